"""Parts of tensors."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter
from tilewright.relay.frontend.tensorflow.ops.slicing import subscripted

_FAR = (1 << 31) - 1
"""Ends from here on mean "to the end"."""


def _sliced(
    node: PaddleNode, data: Expr, axes: list[int], begins: list[Any], ends: list[Any], steps: list[int]
) -> Expr:
    subscripts: list[Any] = [slice(None)] * node.rank(data)
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        if isinstance(end, int):
            # Backwards an end before the first place is the only way to reach it.
            extent = node.shape(data)[axis] or _FAR
            end = None if (end >= _FAR if step > 0 else end < -extent) else end
        subscripts[axis] = slice(begin, end, step)
    made = subscripted(node, data, subscripts)
    gone = sorted({axis % node.rank(data) for axis in node.integers("decrease_axis", [])} - {-1})
    if not gone:
        return made
    followed = node.scope.vectors.get(made)
    if followed is not None and gone == [0]:
        return node.of_elements(followed, node.dtype(data), scalar=True)
    return relay.squeeze(made, axis=gone)


@converter("slice", reads="Input StartsTensor EndsTensor StartsTensorList* EndsTensorList*")
def slice_(
    node: PaddleNode,
    data: Expr,
    start: Expr | None,
    end: Expr | None,
    starts: list[Expr],
    ends: list[Expr],
) -> Expr:
    """A part of some axes; some of them are left out of the result."""
    axes = node.integers("axes")
    begins = node.sizes("starts", start, starts)
    finishes = node.sizes("ends", end, ends)
    return _sliced(node, data, axes, begins, finishes, [1] * len(axes))


@converter(
    "strided_slice",
    reads="Input StartsTensor EndsTensor StridesTensor StartsTensorList* EndsTensorList* StridesTensorList*",
)
def strided_slice(
    node: PaddleNode,
    data: Expr,
    start: Expr | None,
    end: Expr | None,
    step: Expr | None,
    starts: list[Expr],
    ends: list[Expr],
    steps: list[Expr],
) -> Expr:
    """A part of some axes, by steps."""
    return _sliced(
        node,
        data,
        node.integers("axes"),
        node.sizes("starts", start, starts),
        node.sizes("ends", end, ends),
        node.known("strides", step, steps),
    )


@converter("crop_tensor", reads="X Shape Offsets ShapeTensor* OffsetsTensor*")
def crop(
    node: PaddleNode,
    data: Expr,
    shape: Expr | None,
    offset: Expr | None,
    shapes: list[Expr],
    offsets: list[Expr],
) -> Expr:
    """A part of a size at a place; -1 means the rest of an axis."""
    sizes, begins = node.known("shape", shape, shapes), node.known("offsets", offset, offsets)
    ends = [None if size == -1 else begin + size for begin, size in zip(begins, sizes, strict=True)]
    return subscripted(node, data, [slice(one, end, 1) for one, end in zip(begins, ends, strict=True)])
