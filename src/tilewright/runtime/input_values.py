"""Values as the inputs of a model take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.runtime.ndarray import NDArray, array, from_dlpack, numpy_dtype
from tilewright.support.dtype import DataType


def as_input(value: Any, dtype: DataType) -> NDArray:
    """A value as a new array, of the type that ``matching`` gives it."""
    return array(matching(value, dtype))


def matching(value: Any, dtype: DataType) -> NDArray | npt.NDArray[Any]:
    """A value as an array, which may share its memory; of the input's type where only digits are lost: a float64 is
    rounded to float32, anything else must be the same number afterwards. Arrays of other libraries keep their type."""
    if isinstance(value, NDArray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return from_dlpack(value)
    values = np.asarray(value, order="C")
    wanted = numpy_dtype(dtype)
    if values.dtype != wanted and values.dtype.kind in "biuf":
        rounds = values.dtype.kind == "f" and np.can_cast(values.dtype, wanted, "same_kind")
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(wanted)
        if rounds or np.array_equal(cast, values):
            values = cast
    return values
