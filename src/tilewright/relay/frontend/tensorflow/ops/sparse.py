"""Sparse tensors, given by indices and values."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp, const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import sizes_of
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.registry import converter


@converter("SparseToDense")
def sparse_to_dense(node: GraphNode, indices: Expr, shape: Expr, values: Expr, default: Expr) -> Expr:
    """Values at indices, and one number elsewhere."""
    return relay.sparse_to_dense(indices, node.ints(shape, "the shape"), values, default)


def _dense(node: GraphNode, indices: Expr, values: Expr, shape: Expr) -> Expr:
    sizes = node.ints(shape, "the shape")
    return relay.scatter_nd(
        filled(node, list(sizes), node.constant(0, values)), relay.transpose(indices, (1, 0)), values, "add"
    )


@converter("SparseTensorDenseMatMul")
def sparse_dense_matmul(node: GraphNode, indices: Expr, values: Expr, shape: Expr, dense: Expr) -> Expr:
    """The product of a sparse matrix and a dense one."""
    matrix = _dense(node, indices, values, shape)
    if node.attr("adjoint_a", False):
        matrix = relay.transpose(matrix, (1, 0))
    weight = dense if node.attr("adjoint_b", False) else relay.transpose(dense, (1, 0))
    return relay.nn.dense(matrix, weight)


@converter("SparseTensorDenseAdd")
def sparse_dense_add(node: GraphNode, indices: Expr, values: Expr, shape: Expr, dense: Expr) -> Expr:
    """The sum of a sparse tensor and a dense one."""
    return relay.scatter_nd(dense, relay.transpose(indices, (1, 0)), values, "add")


@converter("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    node: GraphNode, indices: Expr, values: Expr, shape: Expr, default: Expr
) -> list[Expr]:
    """A sparse matrix in which rows without any value have one, and which these are."""
    made = relay.sparse_fill_empty_rows(indices, values, shape, default).fields
    parts = [part for part in made if isinstance(part, ExprWithOp)]
    return [*parts[:2], relay.cast(parts[2], "bool")]


@converter("SparseReshape")
def sparse_reshape(node: GraphNode, indices: Expr, shape: Expr, wanted: Expr) -> list[Expr]:
    """A sparse tensor in another shape."""
    made = relay.sparse_reshape(indices, shape, wanted)
    return [made[0], made[1]]


# Segments of rows


def _segments(
    node: GraphNode, data: Expr, indices: Expr, segments: Expr, count: Expr | None
) -> tuple[Expr, Expr]:
    """Sums of the rows of each segment, and how many each has."""
    rows = relay.take(data, indices, axis=0)
    number: Expr | None = None if count is None else relay.reshape(relay.cast(count, "int64"), (1,))
    known = node.value(segments)
    if number is None and known is not None:
        number = const(np.asarray([known.max() + 1 if known.size else 0], "int64"))
    sums = relay.segment_sum(rows, segments, number)
    ones = filled(node, sizes_of(node, segments)[:1], node.constant(1, data))
    counts = relay.segment_sum(ones, segments, number)
    rank = node.rank(sums)
    return sums, relay.maximum(
        relay.expand_dims(counts, 1, rank - 1) if rank > 1 else counts, node.constant(1, data)
    )


@converter("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def sparse_segment_sum(
    node: GraphNode, data: Expr, indices: Expr, segments: Expr, count: Expr | None = None
) -> Expr:
    """Sums of chosen rows by segment."""
    return _segments(node, data, indices, segments, count)[0]


@converter("SparseSegmentMean", "SparseSegmentMeanWithNumSegments")
def sparse_segment_mean(
    node: GraphNode, data: Expr, indices: Expr, segments: Expr, count: Expr | None = None
) -> Expr:
    """Means of chosen rows by segment."""
    return relay.divide(*_segments(node, data, indices, segments, count))


@converter("SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments")
def sparse_segment_sqrt_n(
    node: GraphNode, data: Expr, indices: Expr, segments: Expr, count: Expr | None = None
) -> Expr:
    """Sums of chosen rows by segment, divided by the roots of their numbers."""
    sums, counts = _segments(node, data, indices, segments, count)
    return relay.divide(sums, relay.sqrt(counts))
