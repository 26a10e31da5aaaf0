"""What is not in this version says so, however it is asked for."""

from __future__ import annotations

import importlib

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.compat.not_there import ModuleNotInThisVersion, NotInThisVersion
from tilewright.support.errors import TilewrightError


def test_attributes() -> None:
    """A name within a missing module: an error of ours that is an AttributeError, with advice."""
    with pytest.raises(
        NotInThisVersion,
        match=r"tilewright\.contrib\.coreml_runtime\.create is not in this version .*: export",
    ):
        tvm.contrib.coreml_runtime.create
    assert issubclass(NotInThisVersion, TilewrightError) and issubclass(NotInThisVersion, AttributeError)
    assert not hasattr(tvm.contrib.coreml_runtime, "create")


@pytest.mark.parametrize(
    "name",
    [
        "contrib.coreml_runtime",
        "relay.op.contrib.coreml",
        "contrib.rocblas",
    ],
)
def test_modules_can_be_imported(name: str) -> None:
    """So that a script fails where it uses one, not where it names it."""
    module = importlib.import_module(f"tilewright.{name}")
    package, _, last = f"tilewright.{name}".rpartition(".")
    assert getattr(importlib.import_module(package), last) is module
    assert "Not in this version" in str(module.__doc__)
    with pytest.raises(NotInThisVersion, match="is not in this version"):
        module.anything


def test_imports_from_missing_modules() -> None:
    """``from tvm.contrib.rocblas import matmul`` fails with the same advice."""
    with pytest.raises(ModuleNotInThisVersion, match="is not in this version"):
        from tilewright.contrib.rocblas import matmul  # noqa: F401
    with pytest.raises(ImportError, match="export the model to ONNX"):
        from tilewright.contrib.coreml_runtime import create  # noqa: F401


def test_packages_say_it_too() -> None:
    """A module that is missing can be asked for as an attribute, before anything imported it."""
    for package, name in [
        (relay.op.contrib, "coreml"),
        (tvm.contrib, "rocblas"),
    ]:
        with pytest.raises(NotInThisVersion, match=f"{name}.anything is not in this version"):
            getattr(package, name).anything
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            package.nonsense


def test_devices_that_are_absent_say_so() -> None:
    """Tests for a device ask whether it is there, and are skipped; what needs the device is an error."""
    from tilewright.relay.op.contrib.ethosn import Available, ethosn_available

    assert ethosn_available() is Available.UNAVAILABLE and not ethosn_available()
    assert Available.SW_ONLY and Available.SW_AND_HW
    assert not relay.op.contrib.tensorrt.is_tensorrt_runtime_enabled()
    with pytest.raises(NotInThisVersion, match="tensorrt.partition_for_tensorrt is not in this version"):
        relay.op.contrib.tensorrt.partition_for_tensorrt
    with pytest.raises(ImportError, match="partition_for_ethosn77"):
        from tilewright.relay.op.contrib.ethosn import partition_for_ethosn77  # noqa: F401


def test_functions_for_other_devices_can_be_named() -> None:
    """A table of schedules by device can be made; the entry of a device that is not there fails when it is called."""
    table = {"cpu": tvm.topi.x86.schedule_pool, "gpu": tvm.topi.rocm.schedule_pool}
    with pytest.raises(NotInThisVersion, match=r"topi\.rocm\.schedule_pool is not in this version"):
        table["gpu"]([], "NCHW")
    with pytest.raises(NotInThisVersion, match=r"topi\.mali\.conv2d is not in this version"):
        tvm.topi.mali.conv2d.schedule


def test_other_names_are_plain_errors() -> None:
    """What TVM has not either is no attribute."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        relay.nonsense
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilewright.nonsense")
