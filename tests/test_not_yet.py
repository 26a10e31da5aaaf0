"""What is not in this version says so, however it is asked for."""

from __future__ import annotations

import importlib

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.not_yet import ModuleNotInThisVersion, NotInThisVersion
from tilewright.support.errors import TilewrightError


def test_attributes() -> None:
    """A name within a missing module: an error of ours that is an AttributeError, with advice."""
    with pytest.raises(
        NotInThisVersion, match=r"tilewright\.autotvm\.tuner\.XGBTuner is not in this version .*: sched"
    ):
        tvm.autotvm.tuner.XGBTuner
    assert issubclass(NotInThisVersion, TilewrightError) and issubclass(NotInThisVersion, AttributeError)
    assert not hasattr(tvm.autotvm.tuner, "XGBTuner")


@pytest.mark.parametrize(
    "name",
    ["autotvm", "auto_scheduler.cost_model", "rpc", "relay.qnn.op", "relay.frontend.pytorch"],
)
def test_modules_can_be_imported(name: str) -> None:
    """So that a script fails where it uses one, not where it names it."""
    module = importlib.import_module(f"tilewright.{name}")
    assert "Not in this version" in str(module.__doc__)
    with pytest.raises(NotInThisVersion, match="is not in this version"):
        module.anything


def test_imports_from_missing_modules() -> None:
    """``from tvm.autotvm.tuner import XGBTuner`` fails with the same advice."""
    with pytest.raises(ModuleNotInThisVersion, match="is not in this version"):
        from tilewright.autotvm.tuner import XGBTuner  # noqa: F401
    with pytest.raises(ImportError, match="export the model to ONNX"):
        from tilewright.relay.frontend import from_pytorch  # noqa: F401


def test_other_names_are_plain_errors() -> None:
    """What TVM has not either is no attribute."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        relay.nonsense
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilewright.nonsense")
