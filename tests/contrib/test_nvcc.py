"""What NVIDIA's devices can do."""

import pytest

import tilewright as tvm
from tilewright.contrib import nvcc
from tilewright.support.errors import TargetError


def test_versions() -> None:
    """Each ability begins with a version."""
    assert [nvcc.have_fp16(v) for v in ("5.2", "5.3", "6.0", "8.6")] == [False, True, True, True]
    assert [nvcc.have_int8(v) for v in ("6.0", "6.1")] == [False, True]
    assert [nvcc.have_tensorcore(v) for v in ("6.1", "7.5")] == [False, True]
    assert [nvcc.have_bf16(v) for v in ("7.5", "8.0")] == [False, True]
    assert nvcc.parse_compute_version("10.1") == (10, 1)
    with pytest.raises(TargetError, match="a compute version is written as"):
        nvcc.parse_compute_version("sm_80")


def test_the_version_of_a_target() -> None:
    """The architecture says it; a target without one, or for another device, has no tensor cores."""
    target = tvm.target.Target("cuda -arch=sm_86")
    assert nvcc.get_target_compute_version(target) == "8.6"
    assert nvcc.have_tensorcore(target=target)
    assert not nvcc.have_tensorcore(target=tvm.target.Target("llvm"))


def test_the_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """It is looked for where it is said to be; an empty folder has none."""
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert nvcc.find_cuda_path() == str(tmp_path)
    assert not nvcc.have_cudagraph()
