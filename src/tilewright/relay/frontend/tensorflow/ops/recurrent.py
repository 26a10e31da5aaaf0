"""The cell of a long short-term memory as one operator."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


@converter("LSTMBlockCell")
def lstm_block_cell(
    node: GraphNode,
    data: Expr,
    state: Expr,
    output: Expr,
    weight: Expr,
    peephole_input: Expr,
    peephole_forget: Expr,
    peephole_output: Expr,
    bias: Expr,
) -> list[Expr]:
    """One step: the gates, the new state, and the new output."""
    if node.attr("use_peephole", False):
        raise node.fail("peepholes are not supported")
    joined = relay.concatenate([data, output], axis=1)
    units = node.static_shape(bias)[0]
    gates = relay.add(relay.nn.dense(joined, node.permuted(weight, (1, 0)), units=units), bias)
    into, new, forget, out = relay.split(gates, 4, axis=1)
    shift = node.constant(float(node.attr("forget_bias", 1.0)), data)
    kept = relay.sigmoid(relay.add(forget, shift))
    opened, candidate = relay.sigmoid(into), relay.tanh(new)
    following = relay.add(relay.multiply(state, kept), relay.multiply(opened, candidate))
    clip = float(node.attr("cell_clip", -1.0))
    if clip > 0:
        following = relay.clip(following, -clip, clip)
    shown, squashed = relay.sigmoid(out), relay.tanh(following)
    return [opened, following, kept, shown, candidate, squashed, relay.multiply(squashed, shown)]
