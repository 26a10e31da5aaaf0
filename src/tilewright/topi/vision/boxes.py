"""What the kernels on boxes share: numbers that may be tensors, and how much two boxes overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import tir
from tilewright.ir.operators import as_expr, cast
from tilewright.te import Tensor
from tilewright.tir.ir_builder import BufferVar


class Inputs:
    """The tensors that a kernel reads; attributes that are tensors are among them."""

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = list(tensors)

    def number(self, value: Any, dtype: str) -> Callable[[Sequence[BufferVar]], Any]:
        """How a kernel gets an attribute from its buffers: a constant, an expression, or a tensor of one element."""
        if not isinstance(value, Tensor):
            constant = cast(dtype, as_expr(value))
            return lambda buffers: constant
        position = len(self.tensors)
        self.tensors.append(value)
        return lambda buffers: cast(dtype, buffers[position][0])


def _sides(box: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """(low x, low y, high x, high y) of a box given by any two opposite corners."""
    return (
        tir.Min(box[0], box[2]),
        tir.Min(box[1], box[3]),
        tir.Max(box[0], box[2]),
        tir.Max(box[1], box[3]),
    )


def overlap(one: Sequence[Any], other: Sequence[Any], pixel: float = 0) -> Any:
    """The area that two boxes share, over the area they cover together; zero where they cover nothing.

    A side from ``a`` to ``b`` is ``b - a + pixel`` long.
    """
    kind = one[0].dtype
    zero, extra = tir.const(0, kind), tir.const(pixel, kind)
    left, top, right, bottom = _sides(one)
    other_left, other_top, other_right, other_bottom = _sides(other)
    width = tir.Max(tir.Min(right, other_right) - tir.Max(left, other_left) + extra, zero)
    height = tir.Max(tir.Min(bottom, other_bottom) - tir.Max(top, other_top) + extra, zero)
    shared = width * height
    area = (right - left + extra) * (bottom - top + extra)
    other_area = (other_right - other_left + extra) * (other_bottom - other_top + extra)
    together = area + other_area - shared
    return tir.Select(
        together > zero, shared / tir.Select(together > zero, together, tir.const(1, kind)), zero
    )
