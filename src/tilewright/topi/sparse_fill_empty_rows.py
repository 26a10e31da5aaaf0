"""Sparse tensors without empty rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, Select
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import check_integers
from tilewright.topi.kernel import fill, loop_kernel, scalar
from tilewright.topi.scatter import inside


def sparse_fill_empty_rows(
    sparse_indices: Tensor,
    sparse_values: Tensor,
    dense_shape: Tensor,
    default_value: Tensor,
    new_sparse_indices_shape: Sequence[ExprLike],
    new_sparse_values_shape: Sequence[ExprLike],
    empty_row_indicator_shape: Sequence[ExprLike],
) -> list[Tensor]:
    """A sparse tensor in which every row has an element: an empty one gets ``default_value`` in its first column.

    Returns the index vectors (rows, in ascending order of the first component; elements of one row keep their order),
    the values, and which rows were empty. The shapes of all three are the caller's, who knows how many rows are empty.
    """
    check_integers("sparse_fill_empty_rows", "indices", sparse_indices)
    if len(sparse_indices.shape) != 2 or len(sparse_values.shape) != 1:
        raise ExpressionError(
            f"sparse_fill_empty_rows takes rows of indices and a vector of values, not "
            f"{shape_text(sparse_indices.shape)} and {shape_text(sparse_values.shape)}"
        )
    count, depth = sparse_indices.shape
    indices_shape, values_shape = as_extents(new_sparse_indices_shape), as_extents(new_sparse_values_shape)
    indicator_shape = as_extents(empty_row_indicator_shape)
    rows, room = indicator_shape[0], values_shape[0]
    kind = sparse_indices.dtype

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        indices, values, _, default = ins
        new_indices, new_values, empty = outs
        places = builder.allocate("int32", rows, name="places", scope="global")
        fill(builder, places, rows, 0)
        with builder.for_range(0, count, name="i") as i:
            row = builder.let("row", indices[i * depth])
            with builder.if_scope(inside(row, rows)):
                places[row] = places[row] + 1
        taken = scalar(builder, "int32", "taken", 0)

        def write(place: Any, value: Any, component: Any) -> None:
            with builder.if_scope(place < room):
                new_values[place] = value
                with builder.for_range(0, depth, name="axis") as axis:
                    new_indices[place * depth + axis] = component(axis)

        with builder.for_range(0, rows, name="r") as r:
            elements = builder.let("elements", places[r])
            first = builder.let("first", taken[0])
            places[r] = first
            empty[r] = operators.equal(elements, 0)
            with builder.if_scope(operators.equal(elements, 0)):
                zero = operators.const(0, kind)
                write(first, default[0], lambda axis: Select(axis.equal(0), operators.cast(kind, r), zero))
            taken[0] = first + operators.maximum(elements, 1)
        with builder.for_range(0, count, name="i") as i:
            row = builder.let("row", indices[i * depth])
            with builder.if_scope(inside(row, rows)):
                place = builder.let("place", places[row])
                places[row] = place + 1
                write(place, values[i], lambda axis: indices[i * depth + axis])

    outputs: list[tuple[Sequence[Any], str]] = [
        (indices_shape, kind),
        (values_shape, sparse_values.dtype),
        (indicator_shape, "bool"),
    ]
    inputs = [sparse_indices, sparse_values, dense_shape, default_value]
    return loop_kernel("sparse_fill_empty_rows", inputs, outputs, body)
