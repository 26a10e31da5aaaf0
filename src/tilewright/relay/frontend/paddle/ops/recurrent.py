"""Recurrent layers."""

from __future__ import annotations

from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.recurrent import recurrent_layers
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter

_CELLS: Final = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "tanh", "RNN_RELU": "relu"}


@converter("rnn", reads="Input PreState* WeightList* SequenceLength", writes="Out State*")
def rnn(
    node: PaddleNode, data: Expr, states: list[Expr], weights: list[Expr], lengths: Expr | None
) -> tuple[Expr, list[Expr]]:
    """Layers of recurrent cells over steps (steps, batch, features), in one direction or both."""
    if lengths is not None:
        raise node.fail("sequences of different lengths are not supported")
    cell = _CELLS.get(node.text("mode", "RNN_TANH"))
    if cell is None:
        raise node.fail(f"the mode {node.text('mode')!r} is not known")
    # All matrices come first, then all biases; each layer and direction has two of both.
    half = len(weights) // 2
    ordered: list[Expr] = []
    for place in range(0, half, 2):
        ordered += [*weights[place : place + 2], *weights[half + place : half + place + 2]]
    made = recurrent_layers(
        node, cell, data, states, ordered, 4, node.integer("num_layers", 1), node.flag("is_bidirec")
    )
    return made[0], made[1:]


@converter("lstm_unit", reads="X C_prev", writes="C H")
def lstm_unit(node: PaddleNode, gates: Expr, before: Expr) -> tuple[Expr, Expr]:
    """One step of a long short-term memory whose gates are computed."""
    into, forget, out, new = relay.split(gates, 4, 1)
    kept = relay.sigmoid(relay.add(forget, node.constant(node.real("forget_bias", 0.0), gates)))
    cell = relay.add(relay.multiply(kept, before), relay.multiply(relay.sigmoid(into), relay.tanh(new)))
    return cell, relay.multiply(relay.sigmoid(out), relay.tanh(cell))
