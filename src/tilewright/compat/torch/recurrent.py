"""Recurrent layers by steps, as TVM's converter of PyTorch has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compat.frontend_cells import gru_cell, lstm_cell
from tilewright.relay import op

Weights = Mapping[str, Any]


def _joined(forward: Sequence[Any], backward: Sequence[Any]) -> list[Any]:
    """The outputs of both directions, side by side; the second list begins with the last step."""
    return [op.concatenate(list(pair), axis=-1) for pair in zip(forward, reversed(backward), strict=True)]


class RecurrentLayers:
    """Layers of gated recurrent units and of long short-term memory, step by step."""

    def bidir_gru_cell(
        self, input_seqs: Sequence[Any], weights_dicts: Sequence[Weights]
    ) -> tuple[list[Any], Any, Any]:
        """The outputs of both directions side by side, the last of the first and the last of the second."""
        forward, last = gru_cell(input_seqs, **weights_dicts[0])
        backward, first = gru_cell(input_seqs, **weights_dicts[1], backwards=True)
        return _joined(forward, backward), last, first

    def gru_layers(
        self, input_data: Any, layer_weights_dicts: Any, bidirectional: bool, dropout_p: float = 0.0
    ) -> tuple[Any, Any]:
        """Layers over a list of steps: the outputs, stacked, and the last state of each layer and direction.
        ``layer_weights_dicts`` has the arguments of ``gru_cell`` for each direction of each layer."""
        steps, states = list(input_data), []
        for directions in layer_weights_dicts:
            if bidirectional:
                steps, last, first = self.bidir_gru_cell(steps, directions)
                states += [last, first]
            else:
                steps, last = gru_cell(steps, **directions[0])
                states.append(last)
        return op.stack(steps, 0), op.stack(states, 0)

    def bidir_lstm_cell(
        self, input_seqs: Sequence[Any], weights_dicts: Sequence[Weights]
    ) -> tuple[list[Any], tuple[Any, Any], tuple[Any, Any]]:
        """The outputs of both directions side by side, then for each direction its last output and cell."""
        forward, *last = lstm_cell(input_seqs, **weights_dicts[0])
        backward, *first = lstm_cell(input_seqs, **weights_dicts[1], backwards=True)
        return _joined(forward, backward), (last[0], last[1]), (first[0], first[1])

    def lstm_layers(
        self,
        input_data: Any,
        layer_weights_dicts: Any,
        bidirectional: bool,
        dtype: str,
        dropout_p: float = 0.0,
    ) -> tuple[Any, Any, Any]:
        """Layers over a list of steps: the outputs, stacked, and the last outputs and cells of each layer and
        direction. ``layer_weights_dicts`` has the arguments of ``lstm_cell`` for each direction of each layer."""
        steps, hidden, cells = list(input_data), [], []
        for directions in layer_weights_dicts:
            if bidirectional:
                steps, *ends = self.bidir_lstm_cell(steps, directions)
            else:
                steps, *last = lstm_cell(steps, **directions[0])
                ends = [(last[0], last[1])]
            hidden += [end[0] for end in ends]
            cells += [end[1] for end in ends]
        return op.stack(steps, 0), op.stack(hidden, 0), op.stack(cells, 0)
