"""Elements counted, sorted into ranges, and looked for in others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.ops.segments import joined_rows
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.registry import converter


@converter("Bincount", "DenseBincount")
def bincount(node: GraphNode, data: Expr, size: Expr, weights: Expr) -> Expr:
    """How often each number below a size occurs, or the sums of the weights it occurs with; of a matrix, in each row.
    Numbers from the size on count nowhere."""
    dtype = node.dtype(weights)
    binary = bool(node.attr("binary_output", False))
    count = node.elements(size, "the size")[0]
    rows = sizes_of(node, data)[0] if node.op_type == "DenseBincount" and node.rank(data) == 2 else None
    given = relay.cast(data, "int64")
    weighted = 0 not in node.shape(weights) and not binary
    values = weights if weighted else relay.ones_like(relay.cast(given, dtype))
    if rows is None:
        return joined_rows(node, values, given, count, "max" if binary else "add", 0)
    places = relay.arange(const(0, "int64"), _scalar(rows), const(1, "int64"), "int64")
    across = relay.broadcast_to_like(relay.expand_dims(places, 1), given)
    zeros = filled(node, [rows, count], node.constant(0, weights))
    both = relay.stack([across, given], axis=0)
    return relay.scatter_nd(zeros, both, values, "max" if binary else "add")


def _scalar(size: Any) -> Expr:
    return const(size, "int64") if isinstance(size, int) else size


@converter("Bucketize", "BUCKETIZE")
def bucketize(node: GraphNode, data: Expr) -> Expr:
    """How many boundaries are not above each element."""
    bounds = np.asarray(node.attr("boundaries"), "float32")
    numbers = data if node.dtype(data) == "float64" else relay.cast(data, "float32")
    return relay.searchsorted(node.constant(bounds, numbers), numbers, right=True, dtype="int32")


@converter("LowerBound", "UpperBound")
def bound(node: GraphNode, rows: Expr, values: Expr) -> Expr:
    """Where values belong in sorted rows: before equal elements, or after them."""
    dtype = str(node.attr("out_type", "int32"))
    return relay.searchsorted(rows, values, right=node.op_type == "UpperBound", dtype=dtype)


@converter("InTopK", "InTopKV2")
def in_top_k(node: GraphNode, predictions: Expr, targets: Expr, count: Expr | None = None) -> Expr:
    """Whether fewer than k predictions are greater than that of each row's target, and that one is finite."""
    most = int(node.attr("k")) if count is None else int(node.number(count, "k"))
    places = relay.expand_dims(relay.cast(targets, "int64"), 1)
    classes = relay.cast(const(node.static_shape(predictions)[1]), "int64")
    inside = relay.logical_and(relay.greater_equal(places, const(0, "int64")), relay.less(places, classes))
    chosen = relay.gather(predictions, 1, relay.where(inside, places, relay.zeros_like(places)))
    above = relay.sum(relay.cast(relay.greater(predictions, chosen), "int32"), axis=[1])
    valid = relay.squeeze(relay.logical_and(inside, relay.isfinite(chosen)), axis=[1])
    return relay.logical_and(relay.less(above, const(most, "int32")), valid)


@converter("NthElement")
def nth_element(node: GraphNode, data: Expr, place: Expr) -> Expr:
    """The element at a place of each sorted row."""
    number = int(node.number(place, "n"))
    is_ascending = not node.attr("reverse", False)
    ordered = relay.sort(data, axis=-1, is_ascend=is_ascending)
    return relay.take(ordered, const(number, "int64"), axis=node.rank(data) - 1)


@converter("ListDiff")
def list_difference(node: GraphNode, data: Expr, others: Expr) -> list[Expr]:
    """The elements of a vector that are not in another one, and where they are."""
    index = str(node.attr("out_idx", "int32"))
    if multiplied(sizes_of(node, others)) == 0:
        whole = relay.arange(const(0, "int64"), _scalar(sizes_of(node, data)[0]), const(1, "int64"), "int64")
        return [data, relay.cast(whole, index)]
    same = relay.equal(relay.expand_dims(data, 1), relay.expand_dims(others, 0))
    places = relay.squeeze(relay.argwhere(relay.logical_not(relay.any(same, axis=[1]))), axis=[1])
    return [relay.take(data, places, axis=0), relay.cast(places, index)]


# Parts of a tensor by number


@converter("DynamicPartition")
def dynamic_partition(node: GraphNode, data: Expr, partitions: Expr) -> list[Expr]:
    """The rows of each partition."""
    leading = node.rank(partitions)
    flat = partitions if leading == 1 else relay.reshape(partitions, (-1,))
    rows = data if leading == 1 else reshaped(node, data, [-1, *sizes_of(node, data)[leading:]])
    found: list[Expr] = []
    for number in range(int(node.attr("num_partitions"))):
        inside = relay.equal(flat, node.constant(number, flat))
        places = relay.squeeze(relay.argwhere(inside), axis=[1])
        found.append(relay.take(rows, places, axis=0))
    return found


@converter("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: GraphNode, *given: Expr) -> Expr:
    """Rows of several tensors, each at the place that its index names; later ones win."""
    half = len(given) // 2
    indices, parts = given[:half], given[half:]
    element = sizes_of(node, parts[0])[node.rank(indices[0]) :]
    places = [relay.reshape(relay.cast(one, "int64"), (-1,)) for one in indices]
    known = [node.value(one) for one in indices]
    rows = [
        part if node.rank(one) == 1 else reshaped(node, part, [-1, *element])
        for one, part in zip(indices, parts, strict=True)
    ]
    flat = places[0] if half == 1 else relay.concatenate(places, 0)
    whole = rows[0] if half == 1 else relay.concatenate(rows, 0)
    if all(one is not None for one in known):
        count: Any = max((int(one.max()) for one in known if one is not None and one.size), default=-1) + 1
    else:
        count = relay.add(relay.max(flat), const(1, "int64"))
    zeros = filled(node, [count, *element], node.constant(0, whole))
    return relay.scatter_nd(zeros, relay.expand_dims(flat, 0), whole, "update")
