"""Layers of the usual cells as one operator, with the loop over time inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import extent_of, reshaped
from tilewright.topi.nn import recurrent_block

USUAL: Final = {
    (4, ("sigmoid", "tanh", "tanh")): "lstm",
    (3, ("sigmoid", "tanh")): "gru",
    (1, ("tanh",)): "tanh",
    (1, ("relu",)): "relu",
}
"""By gates and activations, the cells that the operator has."""


def whole_layer(node: Node, gates: int, activations: Sequence[str], data: RelayExpr) -> str | None:
    """The cell of the operator that does all steps of a direction; None where there is none.

    A GRU must have its reset after the product with the state, as all frameworks but ONNX's own default have it.
    """
    cell = USUAL.get((gates, tuple(name.lower() for name in activations)))
    if node.attr("input_forget", 0) or (gates == 3 and not node.attr("linear_before_reset", 0)):
        return None
    return cell if node.dtype(data) in ("float32", "float64") and node.shape(data)[0] != 0 else None


def layer_steps(
    node: Node,
    cell: str,
    gates: int,
    hidden: int,
    data: RelayExpr,
    weight: RelayExpr,
    state_weight: RelayExpr,
    bias: RelayExpr | None,
    state: list[RelayExpr],
) -> tuple[RelayExpr, list[RelayExpr]]:
    """All hidden states (steps, batch, hidden), and the last state."""
    block = recurrent_block(gates, hidden)
    blocks = -(-hidden // block)
    units = blocks * gates * block

    def packed(tensor: RelayExpr, columns: int) -> RelayExpr:
        """Rows of gates and units as (blocks, gates, block, columns); zeros fill the last block."""
        apart = relay.reshape(tensor, (gates, hidden, columns))
        filled = relay.nn.pad(apart, ((0, 0), (0, blocks * block - hidden), (0, 0)))
        return relay.transpose(relay.reshape(filled, (gates, blocks, block, columns)), (1, 0, 2, 3))

    features = node.static_shape(weight, "the weight of the inputs")[1]
    extents = [extent_of(node, data, axis) for axis in range(2)]
    rows = relay.reshape(packed(weight, features), (units, features))
    given: RelayExpr = relay.nn.dense(relay.reshape(data, (-3, 0)), rows)
    zeros: RelayExpr = relay.zeros((hidden,), node.dtype(data))
    of_candidate = zeros
    if bias is not None:
        first, second = relay.split(bias, 2, 0)
        added: RelayExpr = second
        if cell == "gru":
            both, of_candidate = relay.split(second, [2 * hidden], 0)
            added = relay.concatenate([both, zeros], 0)
        given = relay.add(given, relay.reshape(packed(relay.add(first, added), 1), (units,)))
    given = reshaped(node, given, [*extents, units])
    weights = relay.transpose(packed(state_weight, hidden), (0, 3, 1, 2))
    biases: list[RelayExpr] = []
    if cell == "gru":
        biases.append(relay.nn.pad(of_candidate, ((0, blocks * block - hidden),)))
    steps, *last = relay.nn.contrib_recurrent(given, weights, state, biases, cell)
    return steps, list(last)
