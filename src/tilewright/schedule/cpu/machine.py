"""What a schedule knows of the machine: the current target's description, and what a parallel region costs."""

from __future__ import annotations

from typing import Final

from tilewright.support.dtype import DataType
from tilewright.target.cpu import CPUDescription, describe_cpu
from tilewright.target.target import Target

PARALLEL_WORK: Final = 65_536
"""Element operations below which a loop is not worth the microsecond or so that a parallel region costs."""
STORE_WORK: Final = 4
"""Operations that bringing one element to memory counts for."""


def current_cpu() -> CPUDescription:
    """The processor of the current target; this machine where no target is set."""
    return describe_cpu(Target.current() or "llvm")


def lanes_of(cpu: CPUDescription, dtype: DataType | str) -> int:
    """Elements of a type that one vector holds; booleans and odd widths count as bytes."""
    return cpu.lanes(max(DataType(dtype).bits, 8))
