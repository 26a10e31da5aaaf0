"""Cells of recurrent networks, and whole sequences of them, as one operator."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


@dataclass(frozen=True)
class _Cell:
    """What the steps of a long short-term memory share."""

    weight: Expr
    bias: Expr
    peepholes: tuple[Expr, Expr, Expr] | None
    """What of the state goes to the gates of the input, of forgetting, and of the output."""
    forget_bias: float
    clip: float
    is_forget_third: bool
    """The order of the gates: input, candidate, forget, output; else the forget gate comes second."""


def _cell(
    node: GraphNode,
    weight: Expr,
    peepholes: tuple[Expr, Expr, Expr],
    bias: Expr,
    is_forget_third: bool = True,
) -> _Cell:
    forget = float(node.attr("forget_bias", 1.0)) if is_forget_third else 0.0
    used = peepholes if node.attr("use_peephole", False) else None
    return _Cell(weight, bias, used, forget, float(node.attr("cell_clip", -1.0)), is_forget_third)


def _lstm_step(node: GraphNode, cell: _Cell, data: Expr, state: Expr, output: Expr) -> list[Expr]:
    """The gates, the new state, and the new output."""
    joined = relay.concatenate([data, output], axis=1)
    units = node.static_shape(cell.bias)[0]
    gates = relay.add(relay.nn.dense(joined, node.permuted(cell.weight, (1, 0)), units=units), cell.bias)
    parts: list[Expr] = list(relay.split(gates, 4, axis=1))
    into, second, third, out = parts
    new, forget = (second, third) if cell.is_forget_third else (third, second)
    if cell.peepholes is not None:
        into = relay.add(into, relay.multiply(state, cell.peepholes[0]))
        forget = relay.add(forget, relay.multiply(state, cell.peepholes[1]))
    kept = relay.sigmoid(relay.add(forget, node.constant(cell.forget_bias, data)))
    opened, candidate = relay.sigmoid(into), relay.tanh(new)
    following = relay.add(relay.multiply(state, kept), relay.multiply(opened, candidate))
    if cell.clip > 0:
        following = relay.clip(following, -cell.clip, cell.clip)
    if cell.peepholes is not None:
        out = relay.add(out, relay.multiply(following, cell.peepholes[2]))
    shown, squashed = relay.sigmoid(out), relay.tanh(following)
    return [opened, following, kept, shown, candidate, squashed, relay.multiply(squashed, shown)]


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
    cell = _cell(node, weight, (peephole_input, peephole_forget, peephole_output), bias)
    return _lstm_step(node, cell, data, state, output)


@converter("BlockLSTM", "BlockLSTMV2")
def block_lstm(
    node: GraphNode,
    count: Expr,
    data: Expr,
    state: Expr,
    output: Expr,
    weight: Expr,
    peephole_input: Expr,
    peephole_forget: Expr,
    peephole_output: Expr,
    bias: Expr,
) -> list[Expr]:
    """A sequence, of which each step reads the state and the output of the one before; steps from a count on are
    zero."""
    is_forget_third = node.op_type == "BlockLSTM"
    peepholes = (peephole_input, peephole_forget, peephole_output)
    cell = _cell(node, weight, peepholes, bias, is_forget_third)
    total = node.static_shape(data)[0]
    used = min(int(node.number(count, "seq_len_max")), total)
    steps: list[list[Expr]] = []
    for place in range(used):
        found = _lstm_step(node, cell, relay.take(data, node.constant(place, "int64"), axis=0), state, output)
        state, output = found[1], found[6]
        steps.append(found)
    rest: list[Expr] = [relay.zeros_like(output)] * (total - used)
    return [relay.stack([*(step[part] for step in steps), *rest], axis=0) for part in range(7)]


@converter("GRUBlockCell")
def gru_block_cell(
    node: GraphNode,
    data: Expr,
    output: Expr,
    weight: Expr,
    candidate_weight: Expr,
    bias: Expr,
    candidate_bias: Expr,
) -> list[Expr]:
    """One step of a gated recurrent unit: its gates, the candidate, and the new output."""
    joined = relay.concatenate([data, output], axis=1)
    gates = relay.sigmoid(relay.add(relay.nn.dense(joined, node.permuted(weight, (1, 0))), bias))
    reset, update = relay.split(gates, 2, axis=1)
    again = relay.concatenate([data, relay.multiply(reset, output)], axis=1)
    product = relay.nn.dense(again, node.permuted(candidate_weight, (1, 0)))
    candidate = relay.tanh(relay.add(product, candidate_bias))
    kept = relay.multiply(update, output)
    fresh = relay.multiply(relay.subtract(node.constant(1, data), update), candidate)
    return [reset, update, candidate, relay.add(kept, fresh)]
