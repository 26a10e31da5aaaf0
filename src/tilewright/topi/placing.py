"""Tensors whose elements are put in the places that data name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import check_integers, product
from tilewright.topi.kernel import fill, loop_kernel
from tilewright.topi.scatter import inside


def invert_permutation(data: Tensor) -> Tensor:
    """The vector in which the element at ``data[i]`` is ``i``."""
    check_integers("invert_permutation", "the permutation", data)
    if len(data.shape) != 1:
        raise ExpressionError(f"invert_permutation takes a vector, not {shape_text(data.shape)}")
    extent = data.shape[0]

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        fill(builder, outs[0], extent, 0)
        with builder.for_range(0, extent, name="i") as i:
            place = builder.let("place", ins[0][i])
            with builder.if_scope(inside(place, extent)):
                outs[0][place] = operators.cast(data.dtype, i)

    return loop_kernel("invert_permutation", [data], [(data.shape, data.dtype)], body)[0]


def sparse_to_dense(
    sparse_indices: Tensor,
    output_shape: Sequence[ExprLike],
    sparse_values: Tensor,
    default_value: Any = 0,
) -> Tensor:
    """A tensor of ``default_value`` with values at indices: one index, a vector of them, or rows of index vectors.

    One value applies to all indices. Indices outside of the shape are left out.
    """
    check_integers("sparse_to_dense", "indices", sparse_indices)
    shape = as_extents(output_shape)
    if len(sparse_indices.shape) > 2 or len(sparse_values.shape) > 1:
        raise ExpressionError(
            f"sparse_to_dense: indices {shape_text(sparse_indices.shape)} or values "
            f"{shape_text(sparse_values.shape)} have too many dimensions"
        )
    count = sparse_indices.shape[0] if sparse_indices.shape else operators.const(1)
    depth = sparse_indices.shape[1] if len(sparse_indices.shape) == 2 else operators.const(1)
    if not isinstance(depth, IntImm) or depth.value != len(shape):
        raise ExpressionError(f"sparse_to_dense: index vectors of {depth} do not index {shape_text(shape)}")
    one_value = not sparse_values.shape
    if not one_value and known_different(sparse_values.shape[0], count):
        raise ExpressionError(f"sparse_to_dense: {count} indices and {sparse_values.shape[0]} values")
    inputs = [sparse_indices, sparse_values]
    if isinstance(default_value, Tensor):
        inputs.append(default_value)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        default = ins[2][0] if isinstance(default_value, Tensor) else operators.as_expr(default_value)
        fill(builder, outs[0], product(shape), operators.cast(sparse_values.dtype, default))
        with builder.for_range(0, count, name="i") as i:
            offset: PrimExpr = operators.const(0)
            valid: PrimExpr = operators.const(True)
            for component, extent in enumerate(shape):
                index = builder.let(f"index{component}", ins[0][i * len(shape) + component])
                valid = operators.logical_and(valid, inside(index, extent))
                offset = offset * extent + index
            with builder.if_scope(valid):
                outs[0][offset] = ins[1][0 if one_value else i]

    return loop_kernel("sparse_to_dense", inputs, [(shape, sparse_values.dtype)], body)[0]
