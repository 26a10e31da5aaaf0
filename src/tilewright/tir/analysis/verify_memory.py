"""Checks that the host does not access memory of a device."""

from __future__ import annotations

from tilewright.support.recursion import with_recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.verify_memory import memory_violations


@with_recursion_room
def verify_memory(func: PrimFunc) -> bool:
    """True if no code outside device threads reads or writes memory of the function's target."""
    return not memory_violations(func)
