"""Operators that sort, count, and run along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import TupleWrapper, const
from tilewright.relay.frontend.common.linear_algebra import determinants
from tilewright.relay.frontend.common.running import running
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import as_scalar, extent_of, int64
from tilewright.relay.frontend.onnx.registry import converter


@converter("TopK")
def top_k_attribute(node: Node, data: RelayExpr) -> list[RelayExpr]:
    """The number as an attribute, before opset 10."""
    return _top(node, data, int(node.attr("k")), True)


@converter("TopK", since=10)
def top_k(node: Node, data: RelayExpr, k: RelayExpr) -> list[RelayExpr]:
    """The number as an input; the greatest, or the least."""
    value = node.value(k)
    number = int64(node, k) if value is None else int(value.reshape(-1)[0])
    return _top(node, data, number, bool(node.attr("largest", 1)))


def _top(node: Node, data: RelayExpr, k: int | RelayExpr, largest: bool) -> list[RelayExpr]:
    axis = node.axis(-1, node.rank(data))
    if isinstance(k, int) and k < 1:
        none = relay.strided_slice(data, [0], [0], axes=[axis])
        return [none, relay.cast(none, "int64")]
    found = relay.topk(data, k, axis, "both", not largest, "int64")
    assert isinstance(found, TupleWrapper)
    return list(found)


@converter("CumSum")
def cum_sum(node: Node, data: RelayExpr, axis: RelayExpr) -> RelayExpr:
    """The running sum."""
    return _running(node, data, axis, relay.cumsum)


@converter("CumProd")
def cum_prod(node: Node, data: RelayExpr, axis: RelayExpr) -> RelayExpr:
    """The running product."""
    return _running(node, data, axis, relay.cumprod)


def _running(node: Node, data: RelayExpr, axis: RelayExpr, function: Callable[..., Expr]) -> RelayExpr:
    place = node.from_front(node.ints(axis, "the axis")[0], node.rank(data))
    exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
    return running(function, data, place, exclusive=exclusive, reverse=reverse, dtype=node.dtype(data))


@converter("ReverseSequence", since=10)
def reverse_sequence(node: Node, data: RelayExpr, lengths: RelayExpr) -> RelayExpr:
    """The first elements of each sequence turned around."""
    return relay.reverse_sequence(
        data, lengths, int(node.attr("time_axis", 0)), int(node.attr("batch_axis", 1))
    )


@converter("Unique", since=11)
def unique(node: Node, data: RelayExpr) -> list[RelayExpr]:
    """The different elements, or slices along an axis; where each first appears, which one each is, and how often."""
    ordered = bool(node.attr("sorted", 1))
    if node.attr("axis", None) is None:
        flat = relay.reshape(data, (-1,))
        values, firsts, numbers, _, counts = relay.unique(flat, ordered, True)
        return [values, *(relay.cast(one, "int64") for one in (firsts, numbers, counts))]
    axis = node.axis(0, node.rank(data))
    order = [axis, *(one for one in range(node.rank(data)) if one != axis)]
    rows = relay.reshape(relay.transpose(data, order), (0, -1))
    _, firsts, numbers, _, counts = relay.unique(_row_numbers(node, rows), ordered, True)
    slices = relay.take(data, firsts, axis=axis)
    return [slices, *(relay.cast(one, "int64") for one in (firsts, numbers, counts))]


def _row_numbers(node: Node, rows: RelayExpr) -> RelayExpr:
    """For each row of a matrix its number among the different rows in lexicographic order."""
    one, other = relay.expand_dims(rows, 1), relay.expand_dims(rows, 0)
    differs = relay.cast(relay.not_equal(one, other), "int32")
    place = relay.argmax(differs, axis=2, keepdims=True)
    equal = relay.equal(relay.max(differs, axis=2), const(0, "int32"))
    less = relay.cast(relay.less(one, other), "int32")
    before = relay.cast(relay.squeeze(relay.gather(less, 2, place), [2]), "int32")
    first = relay.argmax(relay.cast(equal, "int32"), axis=1)
    count = as_scalar(extent_of(node, rows, 0))
    own = relay.arange(const(0, "int64"), count, const(1, "int64"), "int64")
    is_first = relay.cast(relay.equal(relay.cast(first, "int64"), own), "int32")
    return relay.sum(relay.multiply(before, relay.expand_dims(is_first, 1)), axis=0)


@converter("DepthToSpace")
def depth_to_space(node: Node, data: RelayExpr) -> RelayExpr:
    """Channels spread over blocks of space."""
    return relay.nn.depth_to_space(data, int(node.attr("blocksize")), mode=str(node.attr("mode", "DCR")))


@converter("SpaceToDepth")
def space_to_depth(node: Node, data: RelayExpr) -> RelayExpr:
    """Blocks of space stacked into channels."""
    block = int(node.attr("blocksize"))
    made = relay.nn.space_to_depth(data, block)
    if str(node.attr("mode", "DCR")) == "DCR":
        return made
    # The places of a block come innermost among the channels.
    split = relay.reshape(made, (0, -4, block * block, -1, -2))
    return relay.reshape(relay.transpose(split, (0, 2, 1, 3, 4)), (0, -3, -2))


@converter("Einsum", since=12)
def einsum(node: Node, *inputs: RelayExpr) -> RelayExpr:
    """The sum of products that a formula names."""
    return relay.einsum(inputs, str(node.attr("equation")).replace(" ", ""))


@converter("Det", since=11)
def determinant(node: Node, data: RelayExpr) -> RelayExpr:
    """The determinants of matrices."""
    return determinants(node, cast(Expr, data))
