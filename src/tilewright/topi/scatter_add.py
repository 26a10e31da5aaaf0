"""Adding at indices that are data."""

from __future__ import annotations

from tilewright.te.tensor import Tensor
from tilewright.topi.scatter import scatter_elements


def scatter_add(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """The data with ``updates`` added in the places that ``indices`` names along an axis."""
    return scatter_elements("scatter_add", data, indices, updates, axis, "add")
