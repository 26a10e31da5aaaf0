"""Converters of ONNX with functions of their own: recurrent layers, resizing, clipping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.compat.frontend_cells import gru_cell, lstm_cell
from tilewright.compat.onnx.base import (
    Attributes,
    OnnxOpConverter,
    convert_operator,
    converts,
)
from tilewright.compat.onnx.helpers import onnx_input
from tilewright.relay import op

Activations = Sequence[Callable[[Any], Any]]


def stacked_directions(forward: Sequence[Any], backward: Sequence[Any]) -> Any:
    """The outputs of two directions by step: the second list begins with the last step."""
    pairs = zip(forward, reversed(backward), strict=True)
    return op.stack([op.stack(list(pair), axis=0) for pair in pairs], axis=0)


@converts("RNN")
class RNN(OnnxOpConverter):
    """A layer of plain recurrent cells."""


@converts("LSTM")
class LSTM(RNN):
    """A layer of long short-term memory."""

    @classmethod
    def bidir_lstm_cell(
        cls, input_seqs: Sequence[Any], weight_dicts: Sequence[Mapping[str, Any]], acts: Activations
    ) -> tuple[Any, Any, Any]:
        """The outputs of both directions for each step, their last outputs, and their last cells. ``weight_dicts`` has
        the arguments of ``lstm_cell`` for each direction, ``acts`` three activations for each."""
        runs = [
            lstm_cell(
                input_seqs,
                **weights,
                **dict(zip(("f_act", "g_act", "h_act"), acts[3 * way : 3 * way + 3], strict=True)),
                backwards=bool(way),
            )
            for way, weights in enumerate(weight_dicts)
        ]
        (forward, *last), (backward, *first) = runs
        hidden, cell = (op.stack(list(pair), axis=0) for pair in zip(last, first, strict=True))
        return stacked_directions(forward, backward), hidden, cell


@converts("GRU")
class GRU(RNN):
    """A layer of gated recurrent units."""

    @classmethod
    def bidir_gru_cell(
        cls, input_seqs: Sequence[Any], weight_dicts: Sequence[Mapping[str, Any]], acts: Activations
    ) -> tuple[Any, Any]:
        """The outputs of both directions for each step, and their last ones. ``weight_dicts`` has the arguments of
        ``gru_cell`` for each direction, ``acts`` two activations for each."""
        runs = [
            gru_cell(
                input_seqs,
                **weights,
                rz_act=acts[2 * way],
                n_act=acts[2 * way + 1],
                backwards=bool(way),
            )
            for way, weights in enumerate(weight_dicts)
        ]
        (forward, last), (backward, first) = runs
        return stacked_directions(forward, backward), op.stack([last, first], axis=0)


@converts("Resize")
class Resize(OnnxOpConverter):
    """An image in another size."""

    @classmethod
    def v11_13_common(cls, inputs: Any, size: Any, attr: Attributes, params: Mapping[str, Any]) -> Any:
        """The first input in a size, which may be computed; the second is the region to crop to, if any."""
        given = onnx_input(inputs)
        return convert_operator("Resize", [given[0], given[1], None, size], attr, params, 13)


@converts("Clip")
class Clip(OnnxOpConverter):
    """Elements kept between two limits."""

    @classmethod
    def convert_attributes(cls, inputs: Any, attr: Attributes, params: Mapping[str, Any]) -> Any:
        """The limits as attributes, as before opset 11."""
        return convert_operator("Clip", onnx_input(inputs)[:1], attr, params, 6)
