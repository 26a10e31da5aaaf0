"""All dimensions but the first as one."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, prod, simplify, unravel_index


def flatten(data: Tensor) -> Tensor:
    """``data`` as a matrix: the first dimension, and all others in row-major order."""
    if not data.shape:
        raise InvalidShapeError("flatten needs a tensor with one dimension or more")
    inner = data.shape[1:]

    def element(i: Any, j: Any) -> Any:
        return data(i, *unravel_index(j, inner))

    made: Tensor = te.compute((data.shape[0], simplify(prod(inner))), element, tag=tag.INJECTIVE)
    return made
