"""What schedulers know about the machine: the CPU description of the current target, and the cost of a store."""

from __future__ import annotations

from typing import Final

from tilewright.support.dtype import DataType
from tilewright.target.cpu import CPUDescription, describe_cpu
from tilewright.target.target import Target

STORE_WORK: Final = 4
"""The cost of storing one element, in operations."""


def current_cpu() -> CPUDescription:
    """The CPU of the current target; this machine if no target is set."""
    return describe_cpu(Target.current() or "llvm")


def lanes_of(cpu: CPUDescription, dtype: DataType | str) -> int:
    """Elements of a type that one vector holds; booleans and odd widths count as bytes."""
    return cpu.lanes(max(DataType(dtype).bits, 8))
