"""Recurrent layers with their loop inside, as the layers of the standard.

``nn.contrib_recurrent`` begins after the product of the inputs and their weight, where the standard's layers begin
before it. So their input is what the inputs contribute to the gates, and their weight of the inputs is the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.relay.backend.onnx_export.builder import GraphWriter, dtype_of, shape_of, writes
from tilewright.topi.nn.recurrent import CELLS

_LAYERS = {"lstm": "LSTM", "gru": "GRU", "tanh": "RNN", "relu": "RNN"}


@writes("nn.contrib_recurrent")
def write_recurrent(graph: GraphWriter, call: Any, given: str, weight: str, *rest: str) -> list[str]:
    """A layer of one direction."""
    cell = str(call.attrs.cell)
    kind = CELLS[cell]
    steps, batch, _ = shape_of(call.args[0])
    blocks, hidden, gates, block = shape_of(call.args[1])

    def units(data: str, axis: int) -> str:
        """Without the units that fill the last block."""
        bounds = [graph.integers([number]) for number in (0, hidden, axis)]
        return data if blocks * block == hidden else graph.node("Slice", [data, *bounds])

    apart = graph.transpose(graph.reshape(given, (steps, batch, blocks, gates, block)), (0, 1, 3, 2, 4))
    inputs = units(graph.reshape(apart, (steps, batch, gates, blocks * block)), 3)
    rows = graph.reshape(graph.transpose(weight, (2, 0, 3, 1)), (gates, blocks * block, hidden))
    operands = [
        graph.reshape(inputs, (steps, batch, gates * hidden)),
        graph.constant(np.eye(gates * hidden)[None], dtype_of(call.args[0]), "identity"),
        graph.reshape(units(rows, 1), (1, gates * hidden, hidden)),
        _bias(graph, call, [units(one, 0) for one in rest[kind.states :]], gates, hidden),
        "",
        *[graph.reshape(one, (1, batch, hidden)) for one in rest[: kind.states]],
    ]
    attributes: dict[str, Any] = {"hidden_size": hidden}
    if cell == "gru":
        attributes["linear_before_reset"] = 1
    elif cell != "lstm":
        attributes["activations"] = [cell.capitalize()]
    every, *last = graph.nodes_of(_LAYERS[cell], operands, 1 + kind.states, **attributes)
    return [graph.squeeze(every, [1]), *[graph.squeeze(one, [0]) for one in last]]


def _bias(graph: GraphWriter, call: Any, biases: list[str], gates: int, hidden: int) -> str:
    """The standard has a bias for each gate of the inputs and of the state; a cell here has that of the last gate of
    the state, or none."""
    if not biases:
        return ""
    zeros = graph.constant(np.zeros((2 * gates - 1) * hidden), dtype_of(call.args[0]), "zeros")
    return graph.unsqueeze(graph.node("Concat", [zeros, *biases], axis=0), [0])
