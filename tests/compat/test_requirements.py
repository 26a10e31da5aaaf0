"""The decorators that say what a test requires: what they mark it with, and where they skip it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tvm
from tilewright.contrib import cudnn
from tilewright.runtime.external import cublas
from tilewright.testing import marks

HAS_CUDA = tvm.cuda(0).exist
REQUIREMENTS = {
    "requires_gpu": (["gpu"], None),
    "requires_cuda": (["cuda", "gpu"], HAS_CUDA),
    "requires_cudnn": (["cuda", "gpu"], HAS_CUDA and cudnn.exists()),
    "requires_cublas": (["cuda", "gpu"], HAS_CUDA and cublas.is_available()),
    "requires_nvptx": (["gpu", "llvm"], None),
    "requires_cudagraph": (["cuda", "gpu"], HAS_CUDA),
    "requires_opencl": (["gpu", "opencl"], tvm.opencl(0).exist),
    "requires_rocm": (["gpu", "rocm"], tvm.rocm(0).exist),
    "requires_metal": (["gpu", "metal"], tvm.metal(0).exist),
    "requires_vulkan": (["gpu", "vulkan"], tvm.vulkan(0).exist),
    "requires_tensorcore": (["gpu", "tensorcore"], None),
    "requires_llvm": (["llvm"], True),
    "requires_micro": ([], False),
    "requires_rpc": ([], True),
    "requires_ethosn": (["ethosn"], False),
    "requires_hexagon": (["hexagon", "llvm"], tvm.hexagon(0).exist),
    "requires_cmsisnn": ([], False),
}
"""For each decorator the marks of TVM's, and whether the test runs here, where that is known otherwise."""


def marked(function: Any) -> tuple[list[str], list[Any]]:
    """The names of the marks on a test, and those that skip it, if any."""
    found = function.pytestmark
    return sorted(one.name for one in found if one.name != "skipif"), [
        one for one in found if one.name == "skipif"
    ]


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_requirement(name: str) -> None:
    """A decorator marks the test, for ``pytest -m``, and skips it where what it needs is missing, with the reason."""
    names, is_there = REQUIREMENTS[name]
    decorate: Callable[..., Any] = getattr(tvm.testing.utils, name)

    def fresh() -> None:
        """Marks are kept on the function itself."""

    assert decorate(fresh) is fresh
    found, (skip,) = marked(fresh)
    assert found == names
    assert is_there is None or skip.args == (not is_there,)
    assert skip.kwargs["reason"].endswith("is not available")
    assert f"Skip the test where {skip.kwargs['reason'].removesuffix(' is not available')}" in str(
        decorate.__doc__
    )


def test_marks_without_a_test() -> None:
    """A decorator without a test gives its marks, which parameters of tests take, and which decorate as well."""
    given = tvm.testing.utils.requires_cuda()
    assert [one.name for one in given] == ["cuda", "gpu", "skipif"]
    assert [one.name for one in pytest.param(1, marks=given).marks] == ["cuda", "gpu", "skipif"]

    def fresh() -> None:
        """A test."""

    assert given(fresh) is fresh and marked(fresh)[0] == ["cuda", "gpu"]


def test_a_gpu_that_is_used_where_there_is_one() -> None:
    """The test is marked, and skipped nowhere."""

    def fresh() -> None:
        """A test."""

    assert tvm.testing.utils.uses_gpu(fresh) is fresh
    assert marked(fresh) == (["gpu"], [])
    assert [one.name for one in tvm.testing.utils.uses_gpu()] == ["gpu"]


@pytest.mark.parametrize(("version", "expected"), [("6.1", False), ("7.0", True), ("10.0", True)])
def test_tensor_cores(version: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs have them from compute capability 7.0 on."""

    class Gpu:
        compute_version = version

    monkeypatch.setattr(marks, "enabled", lambda target: target == "cuda")
    monkeypatch.setattr(marks, "device", lambda kind, number: Gpu())

    @tvm.testing.utils.requires_tensorcore
    def fresh() -> None:
        """A test."""

    assert marked(fresh)[1][0].args == (not expected,)


def test_every_mark_is_registered(pytestconfig: pytest.Config) -> None:
    """``--strict-markers`` knows them."""
    registered = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert registered >= set(marks.MARKS)
    assert {name for names, _ in REQUIREMENTS.values() for name in names} == set(marks.MARKS)


def test_the_end_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``terminate_self`` ends the process at once, with a status of failure; nothing is cleaned up."""
    ended: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(marks.os, "_exit", ended.append)
        tvm.testing.utils.terminate_self()
    assert ended == [-1]
    program = (
        "import atexit; from tilewright.testing.utils import terminate_self\n"
        "atexit.register(print, 'cleaned up', flush=True)\n"
        "terminate_self()\n"
        "print('still here', flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 255 and done.stdout == ""
