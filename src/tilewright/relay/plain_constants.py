"""``relay.const``: constants of the types that TVM gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.relay.expr import Constant
from tilewright.relay.expr import const as constant

_LIMITS = np.iinfo("int32")


def const(value: Any, dtype: str | None = None) -> Constant:
    """A constant from a number, a list, an array of NumPy or one of Tilewright.

    Where no type is given, 64-bit numbers of Python and NumPy become float32, and int32 if they all fit into that. An
    ``NDArray`` keeps its type.
    """
    if dtype is None and isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == np.float64:
            dtype = "float32"
        elif value.dtype == np.int64 and (
            value.size == 0 or (_LIMITS.min <= value.min() and value.max() <= _LIMITS.max)
        ):
            dtype = "int32"
    return constant(value, dtype)
