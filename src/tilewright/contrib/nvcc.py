"""The capabilities of NVIDIA compute versions, and the location of the CUDA toolkit. Kernels are compiled without
it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tilewright.support.errors import TargetError
from tilewright.target.target import Target


def find_cuda_path() -> str:
    """The folder of the toolkit: that of ``CUDA_PATH``, of ``nvcc``, or the usual one."""
    given = os.environ.get("CUDA_PATH")
    if given:
        return given
    found = shutil.which("nvcc")
    if found is not None:
        return str(Path(found).resolve().parent.parent)
    usual = Path("/usr/local/cuda")
    if (usual / "bin" / "nvcc").exists():
        return str(usual)
    raise TargetError("no CUDA toolkit was found: set CUDA_PATH, or put nvcc on the PATH")


def get_cuda_version(cuda_path: str | None = None) -> float:
    """The version of the toolkit, as ``12.4``."""
    folder = find_cuda_path() if cuda_path is None else cuda_path
    compiler = Path(folder) / "bin" / "nvcc"
    text = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"release (\d+\.\d+)", text)
    if found is None:
        raise TargetError(f"{compiler} does not say which version it is")
    return float(found.group(1))


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """``"8.6"`` as (8, 6)."""
    parts = str(compute_version).split(".")
    if len(parts) not in (1, 2) or not all(part.isdigit() for part in parts):
        raise TargetError(f"a compute version is written as 8.6, not {compute_version!r}")
    return int(parts[0]), int(parts[1]) if len(parts) == 2 else 0


def get_target_compute_version(target: Target | None = None) -> str:
    """The compute version of a target with ``-arch=sm_86``, of the current one where none is given: ``"8.6"``."""
    chosen = target if target is not None else Target.current()
    found = re.search(r"sm_(\d+)(\d)", str(chosen))
    if found is None:
        raise TargetError("the compute version is not known: give the target -arch=sm_86, for example")
    return f"{found.group(1)}.{found.group(2)}"


def have_fp16(compute_version: str) -> bool:
    """True if half precision is computed: 5.3, and everything from 6.0 on."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version: str) -> bool:
    """True if there are products of four bytes: from 6.1 on."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str | None = None, target: Target | None = None) -> bool:
    """True if there are tensor cores: from 7.0 on. False where no version is known."""
    if compute_version is None:
        try:
            compute_version = get_target_compute_version(target)
        except TargetError:
            return False
    return parse_compute_version(compute_version) >= (7, 0)


def have_bf16(compute_version: str) -> bool:
    """True if bfloat16 is computed: from 8.0 on."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_cudagraph() -> bool:
    """True if the toolkit here has graphs: from 10.0 on. False without a toolkit."""
    try:
        return get_cuda_version() >= 10.0
    except (TargetError, OSError, subprocess.CalledProcessError):
        return False
