"""Rows of a tensor reduced segment by segment."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import Size, reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.registry import converter

_MODES: Final = {"Sum": "add", "Mean": "add", "Prod": "mul", "Max": "max", "Min": "min"}
"""How ``scatter_nd`` joins the rows of a segment."""


def _mode(node: GraphNode) -> str:
    name = node.op_type.removeprefix("Unsorted").removeprefix("Segment")
    return _MODES[name] if name in _MODES else _MODES[node.op_type.rsplit("_", 1)[1].capitalize()]


def neutral(dtype: str, mode: str) -> Any:
    """The number that joining with others does not change."""
    if mode in ("add", "mul"):
        return int(mode == "mul")
    limits: Any = np.iinfo(dtype) if np.issubdtype(np.dtype(dtype), np.integer) else np.finfo(dtype)
    return limits.min if mode == "max" else limits.max


def joined_rows(
    node: GraphNode, data: Expr, segments: Expr, count: Size, mode: str, initial: Any = None
) -> Expr:
    """The rows of each of ``count`` segments joined, beginning with ``initial``."""
    leading, sizes = node.rank(segments), sizes_of(node, data)
    rows = reshaped(node, data, [-1, *sizes[leading:]]) if leading != 1 else data
    flat = segments if leading == 1 else relay.reshape(segments, (-1,))
    start = neutral(node.dtype(data), mode) if initial is None else initial
    begin = filled(node, [count, *sizes[leading:]], node.constant(start, data))
    return relay.scatter_nd(begin, relay.expand_dims(flat, 0), rows, mode)


def _number_of(node: GraphNode, segments: Expr) -> Size:
    """How many segments sorted numbers name."""
    known = node.value(segments)
    if known is not None:
        return int(known.max()) + 1 if known.size else 0
    last = relay.cast(relay.max(segments), "int64")
    return relay.add(last, const(1, "int64"))


def _rows_of_each(node: GraphNode, data: Expr, segments: Expr, count: Size) -> Expr:
    """How many rows each segment has, in the data's type, with axes of one behind."""
    ones = relay.ones_like(relay.cast(segments, node.dtype(data)))
    counts = joined_rows(node, ones, segments, count, "add")
    behind = node.rank(data) - node.rank(segments)
    return relay.expand_dims(counts, 1, behind) if behind else counts


@converter("SegmentSum", "SEGMENT_SUM")
def segment_sum(node: GraphNode, data: Expr, segments: Expr) -> Expr:
    """Sums of the rows of each segment."""
    known = node.value(segments)
    count = None if known is None else const(np.asarray([known.max() + 1 if known.size else 0], "int64"))
    return relay.segment_sum(data, segments, count)


@converter("SegmentProd", "SegmentMean", "SegmentMax", "SegmentMin")
def segment(node: GraphNode, data: Expr, segments: Expr) -> Expr:
    """Products, means, greatest or least elements of the rows of each segment: zero for one without rows, and the
    product is one."""
    count, mode = _number_of(node, segments), _mode(node)
    made = joined_rows(node, data, segments, count, mode)
    if mode == "mul":
        return made
    rows = _rows_of_each(node, data, segments, count)
    if node.op_type == "SegmentMean":
        return relay.divide(made, relay.maximum(rows, node.constant(1, data)))
    return relay.where(relay.equal(rows, node.constant(0, data)), node.constant(0, data), made)


@converter(
    "UnsortedSegmentSum", "UNSORTED_SEGMENT_SUM", "UnsortedSegmentProd", "UNSORTED_SEGMENT_PROD",
    "UnsortedSegmentMax", "UNSORTED_SEGMENT_MAX", "UnsortedSegmentMin", "UNSORTED_SEGMENT_MIN",
)  # fmt: skip
def unsorted_segment(node: GraphNode, data: Expr, segments: Expr, count: Expr) -> Expr:
    """The rows of each segment joined. There is a given number of segments; one without rows has the number with which
    joining begins."""
    return joined_rows(node, data, segments, node.elements(count, "the number of segments")[0], _mode(node))
