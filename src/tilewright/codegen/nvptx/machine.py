"""An NVIDIA GPU as LLVM sees it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final

from tilewright.codegen.llvm.machine import Machine, float_flags, load_llvm
from tilewright.codegen.llvm.types import Types
from tilewright.support.errors import TargetError
from tilewright.target.gpu import GPUDescription, describe_arch
from tilewright.target.target import Target

TRIPLE: Final = "nvptx64-nvidia-cuda"

# The version of PTX is as old as the architecture's instructions allow, so that older drivers take the code: each row
# is the first architecture that needs it.
_PTX_VERSIONS: Final = ((120, 87), (103, 88), (100, 86), (89, 84), (0, 78))
_lock = threading.RLock()


@dataclass
class GPUMachine(Machine):
    """A GPU. Threads are its lanes, so LLVM must not vectorize loops; float16 and bfloat16 have arithmetic."""

    vectorizes_loops: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.data_layout = str(self.llvm_target_machine.target_data)
        self.types = Types(64, native_half=True, native_bfloat=True)

    @property
    def gpu(self) -> GPUDescription:
        """What schedules know about it."""
        return describe_arch(self.target)


def machine_for(target: Target) -> GPUMachine:
    """The machine that a target names."""
    with _lock:
        return _machine_for(target)


@cache
def _load_short_pointers() -> None:
    """Addresses of shared and local memory take 32 bits, which are half as expensive to compute as 64."""
    load_llvm().set_option("tilewright", "--nvptx-short-ptr")


@cache
def _machine_for(target: Target) -> GPUMachine:
    llvm = load_llvm()
    _load_short_pointers()
    gpu = describe_arch(target)
    opt_level = int(target.attrs.get("opt-level", 3))
    if not 0 <= opt_level <= 3:
        raise TargetError(f"-opt-level={opt_level}: LLVM has the levels 0 to 3")
    attributes = f"+ptx{ptx_version(gpu)}"
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=gpu.arch, features=attributes, opt=opt_level
    )
    machine.set_asm_verbosity(False)
    return GPUMachine(
        target=target,
        family="nvptx",
        triple=TRIPLE,
        cpu=gpu.arch,
        attributes=attributes,
        features=frozenset(),
        vector_bits=128,
        has_fma=True,
        float_flags=float_flags(target),
        opt_level=opt_level,
        is_host=False,
        llvm_target_machine=machine,
    )


def ptx_version(gpu: GPUDescription) -> int:
    """The version of PTX that the architecture's code is written in: 80 for 8.0."""
    return next(version for first, version in _PTX_VERSIONS if gpu.number >= first)
