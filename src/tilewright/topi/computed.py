"""``te.compute`` for operators with one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.expr import ExprLike
from tilewright.te.operation import compute
from tilewright.te.tensor import Tensor


def computed(
    shape: Sequence[ExprLike],
    element: Callable[..., Any],
    name: str,
    tag: str,
    attrs: Mapping[str, Any] | None = None,
) -> Tensor:
    """The tensor whose element at ``i, j, ...`` is ``element(i, j, ...)``."""
    made: Tensor = compute(tuple(shape), element, name=name, tag=tag, attrs=attrs)
    return made
