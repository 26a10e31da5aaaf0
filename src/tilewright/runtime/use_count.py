"""How many references there are to an object of the C runtime."""

from __future__ import annotations

import ctypes

from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc

_STRONG = 0xFFFFFFFF


def object_use_count(value: NDArray | PackedFunc) -> int:
    """The references to the object that an array or a function of Python stands for.

    Two arrays of Python may stand for one object, and a server holds what it has lent to a client. Memory that is lent
    for a call has no count, and neither have expressions and statements, which are objects of Python.
    """
    if isinstance(value, NDArray) and not value.borrowed:
        address = value._handle
    elif isinstance(value, PackedFunc):
        address = value.handle
    else:
        raise failure("TypeError", f"{type(value).__name__}: references to it are not counted by the runtime")
    return ctypes.c_uint64.from_address(address).value & _STRONG
