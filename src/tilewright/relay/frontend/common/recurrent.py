"""Recurrent layers whose weights are as PyTorch and PaddlePaddle have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.topi.nn import recurrent_block

_ORDERS: Final = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "tanh": (0,), "relu": (0,)}
"""Where the gates of the operator (input, output, forget, candidate; update, reset, candidate) are in the models'
weights (input, forget, candidate, output; reset, update, candidate)."""


def _gates(node: ModelNode, tensor: Expr, cell: str) -> Expr:
    """A weight or bias with its gates, along the first axis, in the operator's order."""
    order = _ORDERS[cell]
    if len(order) == 1:
        return tensor
    parts = relay.split(tensor, len(order), 0)
    return relay.concatenate([parts[place] for place in order], 0)


def _steps(
    node: ModelNode, cell: str, data: Expr, weights: Sequence[Expr], states: Sequence[Expr]
) -> list[Expr]:
    """All hidden states (steps, batch, hidden) of one direction, and its last states."""
    gates = len(_ORDERS[cell])
    weight, state_weight = (_gates(node, one, cell) for one in weights[:2])
    rows, features = node.static_shape(weight, "the weight of the inputs")
    hidden = rows // gates
    block = recurrent_block(gates, hidden)
    blocks = -(-hidden // block)
    units = blocks * gates * block

    def packed(tensor: Expr, columns: int) -> Expr:
        """Rows of gates and units as (blocks, gates, block, columns); zeros fill the last block."""
        apart = relay.reshape(tensor, (gates, hidden, columns))
        filled_up = relay.nn.pad(apart, ((0, 0), (0, blocks * block - hidden), (0, 0)))
        return relay.transpose(relay.reshape(filled_up, (gates, blocks, block, columns)), (1, 0, 2, 3))

    steps, batch = sizes_of(node, data)[:2]
    given: Expr = relay.nn.dense(
        reshaped(node, data, [multiplied([steps, batch]), features]),
        relay.reshape(packed(weight, features), (units, features)),
    )
    dtype = node.dtype(data)
    zeros: Expr = relay.zeros((hidden,), dtype)
    of_candidate = zeros
    if len(weights) > 2:
        first, second = (_gates(node, one, cell) for one in weights[2:4])
        if cell == "gru":
            both, of_candidate = relay.split(second, [2 * hidden], 0)
            second = relay.concatenate([both, zeros], 0)
        given = relay.add(given, relay.reshape(packed(relay.add(first, second), 1), (units,)))
    given = reshaped(node, given, [steps, batch, units])
    biases = [relay.nn.pad(of_candidate, ((0, blocks * block - hidden),))] if cell == "gru" else []
    made = relay.nn.contrib_recurrent(
        given, relay.transpose(packed(state_weight, hidden), (0, 3, 1, 2)), states, biases, cell
    )
    return [made[place] for place in range(1 + len(states))]


def recurrent_layers(
    node: ModelNode,
    cell: str,
    data: Expr,
    states: Sequence[Expr],
    params: Sequence[Expr],
    each: int,
    num_layers: int,
    bidirectional: bool,
) -> list[Expr]:
    """The outputs of the last layer (steps, batch, features), and the last states of all layers and directions.

    ``cell`` is ``lstm``, ``gru``, ``tanh`` or ``relu``. ``params`` has ``each`` tensors for each layer and direction:
    the weight of the inputs, the weight of the state, and perhaps a bias of each.
    """
    directions = 2 if bidirectional else 1
    last: list[list[Expr]] = [[] for _ in states]
    for layer in range(num_layers):
        shown: list[Expr] = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = params[number * each : (number + 1) * each]
            own = [relay.take(state, node.constant(number, "int64"), axis=0) for state in states]
            steps, *final = _steps(node, cell, relay.reverse(data, 0) if direction else data, weights, own)
            shown.append(relay.reverse(steps, 0) if direction else steps)
            for place, state in enumerate(final):
                last[place].append(state)
        data = shown[0] if directions == 1 else relay.concatenate(shown, 2)
    return [data, *(relay.stack(state, 0) for state in last)]
