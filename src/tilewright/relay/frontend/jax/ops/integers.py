"""Bits of integers: complements, shifts, reinterpretation."""

from __future__ import annotations

from collections.abc import Callable

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.registry import converter


def _bits(dtype: str) -> int:
    return int("".join(letter for letter in dtype if letter.isdigit()))


@converter("not")
def complement(node: JaxNode, data: Expr) -> Expr:
    """The other truth value, or all bits turned."""
    return relay.logical_not(data) if node.dtype(data) == "bool" else relay.bitwise_not(data)


def _shifted(
    node: JaxNode,
    function: Callable[[Expr, Expr], Expr],
    data: Expr,
    amount: Expr,
    beyond: Expr | None = None,
) -> Expr:
    """A shift. One by all bits or more gives ``beyond``, or what a shift by all but one bit gives; machines differ."""
    bits = _bits(node.dtype(data))
    data, amount = node.narrowed(data, amount)
    known = node.value(amount)
    if known is not None and (known.astype("int64") >= 0).all() and (known.astype("int64") < bits).all():
        return function(data, amount)
    limit = node.constant(bits - 1, amount)
    inside = relay.less_equal(amount, limit)
    if not node.dtype(amount).startswith("u"):
        inside = relay.logical_and(inside, relay.greater_equal(amount, node.constant(0, amount)))
    made = function(data, relay.where(inside, amount, limit))
    return made if beyond is None else relay.where(inside, made, beyond)


@converter("shift_left")
def shift_left(node: JaxNode, data: Expr, amount: Expr) -> Expr:
    """A shift towards the high bits."""
    return _shifted(node, relay.left_shift, data, amount, node.constant(0, data))


@converter("shift_right_arithmetic")
def shift_right_arithmetic(node: JaxNode, data: Expr, amount: Expr) -> Expr:
    """A shift towards the low bits that keeps the sign."""
    dtype = node.dtype(data)
    signed = dtype.removeprefix("u")
    made = _shifted(node, relay.right_shift, _as(node, data, signed), _as(node, amount, signed))
    return _as(node, made, dtype)


@converter("shift_right_logical")
def shift_right_logical(node: JaxNode, data: Expr, amount: Expr) -> Expr:
    """A shift towards the low bits that brings in zeros."""
    dtype = node.dtype(data)
    unsigned = dtype if dtype.startswith("u") else f"u{dtype}"
    made = _shifted(
        node,
        relay.right_shift,
        _as(node, data, unsigned),
        _as(node, amount, unsigned),
        node.constant(0, unsigned),
    )
    return _as(node, made, dtype)


def _as(node: JaxNode, data: Expr, dtype: str) -> Expr:
    """The same bits as another type of the same size; what was broadcast stays so."""
    if node.dtype(data) == dtype:
        return data
    small = node.source(data)
    if small is not data:
        return node.broadcast(relay.reinterpret(small, dtype), node.static_shape(data))
    return relay.reinterpret(data, dtype)


@converter("bitcast_convert")
def bitcast_convert(node: JaxNode, data: Expr) -> Expr:
    """The bits of a tensor as another type of the same size."""
    wanted = node.result_dtype()
    if _bits(wanted) != _bits(node.dtype(data)):
        raise node.fail(f"{node.dtype(data)} as {wanted}, which has another size, is not supported")
    return _as(node, data, wanted)


@converter("popcnt")
def population_count(node: JaxNode, data: Expr) -> Expr:
    """How many bits are set, summed up bit by bit."""
    one = node.constant(1, data)
    total = relay.bitwise_and(data, one)
    for place in range(1, _bits(node.dtype(data))):
        total = relay.add(total, relay.bitwise_and(relay.right_shift(data, node.constant(place, data)), one))
    return total
