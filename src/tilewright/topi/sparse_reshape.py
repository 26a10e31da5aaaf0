"""Sparse tensors in other shapes."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import as_int, check_integers
from tilewright.topi.kernel import loop_kernel, scalar


def sparse_reshape(
    sparse_indices: Tensor,
    prev_shape: Tensor,
    new_shape: Tensor,
    new_sparse_indices_shape: Sequence[ExprLike],
    new_shape_shape: Sequence[ExprLike],
) -> list[Tensor]:
    """The index vectors (rows) of a sparse tensor after its dense shape changes, and that shape.

    One dimension of ``new_shape`` may be -1: the result has its size in its place.
    """
    for tensor in (sparse_indices, prev_shape, new_shape):
        check_integers("sparse_reshape", "indices and shapes", tensor)
    if len(sparse_indices.shape) != 2 or len(prev_shape.shape) != 1 or len(new_shape.shape) != 1:
        raise ExpressionError(
            f"sparse_reshape takes rows of indices and vectors of dimensions, not {shape_text(sparse_indices.shape)}, "
            f"{shape_text(prev_shape.shape)} and {shape_text(new_shape.shape)}"
        )
    old_rank = as_int("sparse_reshape", "the length of the old shape", prev_shape.shape[0])
    new_rank = as_int("sparse_reshape", "the length of the new shape", new_shape.shape[0])
    kind = sparse_indices.dtype
    count = sparse_indices.shape[0]

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        indices, old, new = ins
        elements = scalar(builder, kind, "elements", 1)
        known = scalar(builder, kind, "known", 1)
        for axis in range(old_rank):
            elements[0] = elements[0] * operators.cast(kind, old[axis])
        for axis in range(new_rank):
            extent = builder.let("extent", operators.cast(kind, new[axis]))
            with builder.if_scope(extent >= 0):
                known[0] = known[0] * extent
        for axis in range(new_rank):
            extent = builder.let("extent", new[axis])
            with builder.if_scope(extent >= 0):
                outs[1][axis] = extent
            with builder.else_scope():
                # A tensor with a dimension of zero has no elements to divide.
                safe = operators.maximum(known[0], operators.const(1, kind))
                outs[1][axis] = operators.cast(new_shape.dtype, operators.floordiv(elements[0], safe))
        with builder.for_range(0, count, name="row", kind="parallel") as row:
            flat = scalar(builder, kind, "flat", 0)
            for axis in range(old_rank):
                flat[0] = flat[0] * operators.cast(kind, old[axis]) + indices[row * old_rank + axis]
            for axis in range(new_rank - 1, -1, -1):
                dimension = operators.cast(kind, outs[1][axis])
                size = builder.let("size", operators.maximum(dimension, operators.const(1, kind)))
                outs[0][row * new_rank + axis] = operators.floormod(flat[0], size)
                flat[0] = operators.floordiv(flat[0], size)

    outputs = [(as_extents(new_sparse_indices_shape), kind), (as_extents(new_shape_shape), new_shape.dtype)]
    return loop_kernel("sparse_reshape", [sparse_indices, prev_shape, new_shape], outputs, body)
