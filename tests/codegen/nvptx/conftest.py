"""What the tests of PTX share: lowering to kernels, ptxas, and running kernels in the interpreter."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tilewright as tvm
from tilewright.codegen.nvptx.build import compile_ptx
from tilewright.codegen.program import LoopProgram
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.target import Target
from tilewright.tir.build_pipeline import device_passes, mixed_passes
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.split_host_device import SplitHostDevice

HOST = Target("llvm")


def find_ptxas() -> str | None:
    """The ptxas of the wheel nvidia-cuda-nvcc, or of the PATH."""
    packages = Path(sysconfig.get_paths()["purelib"])
    for found in sorted(packages.glob("nvidia/*/bin/ptxas")):
        return str(found)
    return shutil.which("ptxas")


@dataclass(frozen=True)
class Assembled:
    """What ptxas says about a kernel."""

    report: str

    @property
    def spills(self) -> bool:
        """True if a register had to be kept in memory."""
        return "0 bytes spill stores, 0 bytes spill loads" not in self.report

    @property
    def stack(self) -> int:
        """Bytes of local memory."""
        return int(self.report.split(" bytes stack frame")[0].rsplit(None, 1)[-1])


class Kit:
    """Lowers, assembles and interprets kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kernels(self, module: IRModule, arch: str) -> IRModule:
        """The device part of a lowered module."""
        target = Target(f"cuda -arch={arch}")
        return Sequential(device_passes(target, HOST))(Sequential(mixed_passes(target, HOST))(module))

    def ptx(self, schedule: Any, args: Sequence[Any] = (), arch: str = "sm_80") -> str:
        """The PTX of a schedule, or of a function or module of loops."""
        module = _lowered(schedule, args)
        return compile_ptx(LoopProgram(self.kernels(module, arch)), f"cuda -arch={arch}").ptx

    def threaded(self, schedule: Any, args: Sequence[Any] = (), arch: str = "sm_80") -> PrimFunc:
        """The function with its barriers, before it is packed and split: what the interpreter runs."""
        passes = [
            each
            for each in mixed_passes(Target(f"cuda -arch={arch}"), HOST)
            if each.name not in ("tir.MakePackedAPI", SplitHostDevice.name)
        ]
        made = Sequential(passes)(_lowered(schedule, args))
        (function,) = made.functions.values()
        assert isinstance(function, PrimFunc)
        return function

    def assemble(self, ptx: str, arch: str = "sm_80") -> Assembled:
        """The report of ptxas, which must take the text."""
        ptxas = find_ptxas()
        if ptxas is None:
            pytest.skip("there is no ptxas: pip install nvidia-cuda-nvcc")
        source = self.folder / "kernel.ptx"
        source.write_text(ptx)
        command = [ptxas, "-v", f"-arch={arch}", str(source), "-o", str(self.folder / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{ptx}"
        return Assembled(done.stdout + done.stderr)


def _lowered(schedule: Any, args: Sequence[Any]) -> IRModule:
    if isinstance(schedule, (PrimFunc, IRModule)):
        return tvm.lower(schedule)
    return tvm.lower(schedule, list(args))


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)
