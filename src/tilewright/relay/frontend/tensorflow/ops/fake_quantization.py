"""Numbers rounded to those that integers can stand for, as graphs of quantisation-aware training have them."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


def fake_quantized(node: GraphNode, data: Expr, least: Expr, most: Expr) -> Expr:
    """Numbers between two bounds in equal steps; the bounds move so that zero is one of the steps."""
    low = float(bool(node.attr("narrow_range", False)))
    high = float((1 << int(node.attr("num_bits", 8))) - 1)
    one = node.constant(1, data)
    scale = relay.divide(relay.subtract(most, least), node.constant(high - low, data))
    # Where both bounds are zero there is nothing to scale, and the result is zero as well.
    divisor = relay.where(relay.equal(scale, node.constant(0, data)), one, scale)
    zero = relay.subtract(node.constant(low, data), relay.divide(least, divisor))
    nudged = relay.clip(_nearest(node, zero), low, high)
    floor = relay.multiply(relay.subtract(node.constant(low, data), nudged), scale)
    ceiling = relay.multiply(relay.subtract(node.constant(high, data), nudged), scale)
    clipped = relay.minimum(relay.maximum(data, floor), ceiling)
    steps = _nearest(node, relay.divide(relay.subtract(clipped, floor), divisor))
    return relay.add(relay.multiply(steps, scale), floor)


def _nearest(node: GraphNode, data: Expr) -> Expr:
    return relay.floor(relay.add(data, node.constant(0.5, data)))


@converter("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: GraphNode, data: Expr) -> Expr:
    """Bounds that are attributes."""
    least, most = (
        node.constant(float(node.attr(name, at)), data) for name, at in (("min", -6.0), ("max", 6.0))
    )
    return fake_quantized(node, data, least, most)


@converter("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(node: GraphNode, data: Expr, least: Expr, most: Expr) -> Expr:
    """Bounds that are tensors: numbers, or one for each channel of the last axis."""
    return fake_quantized(node, data, least, most)


@converter("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(
    node: GraphNode, data: Expr, least: Expr, most: Expr, bits: Expr | None = None
) -> Expr:
    """Numbers in equal steps, of which zero is one; the bounds are given, or those of the data."""
    if int(node.attr("axis", -1)) != -1:
        raise node.fail("ranges of their own for each place of an axis are not supported")
    count = int(node.attr("num_bits", 8)) if bits is None else int(node.number(bits, "num_bits"))
    if not node.attr("range_given", False):
        least, most = relay.min(data), relay.max(data)
    is_signed, narrow = bool(node.attr("signed_input", True)), int(bool(node.attr("narrow_range", False)))
    lowest = narrow - (1 << (count - 1)) if is_signed else narrow
    highest = (1 << (count - 1)) - 1 if is_signed else (1 << count) - 1
    scale = relay.divide(node.constant(highest, data), _positive(node, most, data))
    if is_signed:
        below = relay.divide(node.constant(lowest, data), _negative(node, least, data))
        scale = relay.minimum(below, scale)
    clipped = data
    if node.attr("range_given", False):
        low = relay.divide(node.constant(lowest, data), scale)
        high = relay.divide(node.constant(highest, data), scale)
        clipped = relay.minimum(relay.maximum(data, low), high)
    steps = relay.multiply(clipped, scale)
    if str(node.attr("round_mode", "HALF_TO_EVEN")) == "HALF_UP":
        rounded = _nearest(node, steps)
    else:
        rounded = relay.nearbyint(steps)
    return relay.divide(rounded, scale)


def _positive(node: GraphNode, bound: Expr, data: Expr) -> Expr:
    """The bound where it is above zero, otherwise a number so small that it bounds nothing."""
    tiny = node.constant(1e-30, data)
    return relay.maximum(bound, tiny)


def _negative(node: GraphNode, bound: Expr, data: Expr) -> Expr:
    return relay.minimum(bound, node.constant(-1e-30, data))
