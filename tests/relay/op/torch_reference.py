"""Independent references: functions of PyTorch on NumPy arrays, in float64 where they are of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def by_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors as one of arrays; floats are widened, and the result has the first array's type."""

    def called(*arrays: Any) -> Any:
        tensors = [
            torch.from_numpy(
                np.ascontiguousarray(array.astype("float64") if array.dtype.kind == "f" else array)
            )
            for array in arrays
        ]
        made = function(*tensors)
        if isinstance(made, tuple):
            return tuple(part.numpy().astype(arrays[0].dtype) for part in made)
        return made.numpy().astype(arrays[0].dtype)

    return called
