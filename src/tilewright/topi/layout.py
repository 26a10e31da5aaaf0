"""Tensors in other layouts."""

from __future__ import annotations

import re

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import bijective_layout, layout
from tilewright.topi.computed import computed
from tilewright.topi.tag import INJECTIVE


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """The tensor in another layout (``NCHW`` to ``NCHW16c``); the layouts have the same axes."""
    source, destination = layout(src_layout), layout(dst_layout)
    if source == destination:
        return array
    mapping = bijective_layout(source, destination)
    if mapping is None:
        raise ExpressionError(f"layout_transform: {src_layout} cannot become {dst_layout}: the axes differ")
    if len(source) != len(array.shape):
        raise ExpressionError(
            f"layout_transform: a tensor of {len(array.shape)} dimensions does not have the layout {src_layout}"
        )
    return computed(
        tuple(mapping.forward_shape(array.shape)),
        lambda *i: array(*mapping.backward_index(i)),
        name="T_layout_trans",
        tag=INJECTIVE,
        attrs={"src_layout": src_layout, "dst_layout": dst_layout, "schedule_rule": schedule_rule},
    )


_PART = re.compile(r"(\d+)([a-zA-Z])")


def _parts(text: str) -> list[tuple[int, str]]:
    """The parts of a layout such as ``4N2h16c``: their sizes and axes, in order."""
    found = [(int(size), axis) for size, axis in _PART.findall(text)]
    if not found or "".join(f"{size}{axis}" for size, axis in found) != text:
        raise ExpressionError(f"auto_scheduler_layout_transform: {text!r} is not a layout such as 4N2h16c")
    return found


def auto_scheduler_layout_transform(array: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """The tensor in a layout that the auto-scheduler chose.

    A layout lists the parts of axes from the outermost to the innermost, each as a size and the letter of its axis; an
    axis may have any number of parts.
    """
    source, destination = _parts(src_layout), _parts(dst_layout)
    if len(source) != len(array.shape):
        raise ExpressionError(
            f"auto_scheduler_layout_transform: {len(array.shape)} dimensions do not have the layout {src_layout}"
        )
    for axis in {axis for _, axis in source + destination}:
        if _extent(source, axis) != _extent(destination, axis):
            raise ExpressionError(
                f"auto_scheduler_layout_transform: axis {axis} has different sizes in {src_layout} and {dst_layout}"
            )

    def element(*i: PrimExpr) -> PrimExpr:
        whole: dict[str, PrimExpr] = {}
        for index, (size, axis) in zip(i, destination, strict=True):
            whole[axis] = index if axis not in whole else whole[axis] * size + index
        read: list[PrimExpr] = []
        for size, axis in reversed(source):
            read.append(operators.floormod(whole[axis], size))
            whole[axis] = operators.floordiv(whole[axis], size)
        return array(*reversed(read))

    return computed(
        [size for size, _ in destination],
        element,
        name="auto_scheduler_layout_trans",
        tag=INJECTIVE,
        attrs={"src_layout": src_layout, "dst_layout": dst_layout},
    )


def _extent(parts: list[tuple[int, str]], axis: str) -> int:
    extent = 1
    for size, name in parts:
        extent *= size if name == axis else 1
    return extent
