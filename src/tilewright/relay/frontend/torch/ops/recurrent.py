"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.recurrent import recurrent_layers
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.matrices import linear
from tilewright.relay.frontend.torch.registry import converter

_ONEDNN_LSTM: Final = 2
"""oneDNN's number of the cell."""


def _layers(
    node: TorchNode,
    cell: str,
    input: Expr,
    states: Sequence[Expr],
    params: Sequence[Expr],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Expr]:
    """The outputs of the last layer, and the last states of all layers and directions."""
    if train and dropout and num_layers > 1:
        raise node.fail(
            f"between layers {dropout} of the elements are dropped: call model.eval() before exporting"
        )
    data = relay.transpose(input, (1, 0, 2)) if batch_first else input
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        raise node.fail("projections of the hidden state (proj_size) are not supported")
    made = recurrent_layers(node, cell, data, states, params, each, num_layers, bidirectional)
    return [relay.transpose(made[0], (1, 0, 2)) if batch_first else made[0], *made[1:]]


def _single(node: TorchNode, input: Expr, states: Sequence[Expr], batch_first: bool) -> bool:
    return node.rank(input) == 2


def _run(
    node: TorchNode, cell: str, input: Expr, states: Sequence[Expr], params: Sequence[Expr], *settings: Any
) -> list[Expr]:
    batch_first = bool(settings[-1])
    if not _single(node, input, states, batch_first):
        return _layers(node, cell, input, states, params, *settings)
    # Without a batch.
    axis = 0 if batch_first else 1
    wide = [relay.expand_dims(state, 1) for state in states]
    made = _layers(node, cell, relay.expand_dims(input, axis), wide, params, *settings)
    return [relay.squeeze(made[0], axis=[axis]), *(relay.squeeze(state, axis=[1]) for state in made[1:])]


@converter("aten::lstm.input", "aten::lstm")
def lstm(
    node: TorchNode, input: Expr, hx: list[Expr], params: list[Expr], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Expr]:  # fmt: skip
    """Layers of long short-term memory."""
    return _run(
        node, "lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@converter("aten::mkldnn_rnn_layer")
def lstm_direction(
    node: TorchNode, input: Expr, weight0: Expr, weight1: Expr, weight2: Expr, weight3: Expr, hx_: Expr, cx_: Expr,
    reverse: bool, batch_sizes: list[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool,
) -> list[Any]:  # fmt: skip
    """One direction of an LSTM's layer: what PyTorch takes LSTMs apart into on CPUs with oneDNN."""
    if mode != _ONEDNN_LSTM or num_layers != 1 or bidirectional or batch_first or batch_sizes or train:
        raise node.fail("only one direction of one layer of an LSTM, in inference, is supported")
    data = relay.reverse(input, 0) if reverse else input
    params = [weight0, weight1, weight2, weight3][: 4 if has_biases else 2]
    made = recurrent_layers(node, "lstm", data, [hx_, cx_], params, len(params), 1, False)
    return [relay.reverse(made[0], 0) if reverse else made[0], *made[1:], None]


@converter("aten::gru.input", "aten::gru")
def gru(
    node: TorchNode, input: Expr, hx: Expr, params: list[Expr], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Expr]:  # fmt: skip
    """Layers of gated recurrent units."""
    return _run(
        node, "gru", input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@converter("aten::rnn_tanh.input", "aten::rnn_relu.input", "aten::rnn_tanh", "aten::rnn_relu")
def rnn(
    node: TorchNode, input: Expr, hx: Expr, params: list[Expr], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Expr]:  # fmt: skip
    """Plain recurrent layers."""
    cell = "relu" if "relu" in node.op_type else "tanh"
    return _run(
        node, cell, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@converter("aten::lstm.data", "aten::gru.data", "aten::rnn_tanh.data", "aten::rnn_relu.data")
def packed_layers(
    node: TorchNode, data: Expr, batch_sizes: Expr, hx: Any, params: list[Expr], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> list[Expr]:  # fmt: skip
    """Layers on sequences of several lengths, of which each step has as many as still go on; the lengths have to be
    known, and the steps are written out."""
    counts = [int(count) for count in node.required_value(batch_sizes, "the sizes of the packed batches")]
    cell = {"lstm": "lstm", "gru.": "gru", "rnn_tanh": "tanh", "rnn_relu": "relu"}[
        next(name for name in ("lstm", "gru.", "rnn_tanh", "rnn_relu") if name in node.op_type)
    ]
    states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        raise node.fail("projections of the hidden state (proj_size) are not supported")
    last: list[list[Expr]] = [[] for _ in states]
    for layer in range(num_layers):
        shown = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = params[number * each : (number + 1) * each]
            own = [relay.take(state, node.constant(number, "int64"), axis=0) for state in states]
            steps, final = _packed_steps(node, cell, data, counts, weights, own, bool(direction))
            shown.append(steps)
            for place, state in enumerate(final):
                last[place].append(state)
        data = shown[0] if directions == 1 else relay.concatenate(shown, 1)
    return [data, *(relay.stack(state, 0) for state in last)]


def _packed_steps(
    node: TorchNode, cell: str, data: Expr, counts: list[int], weights: Sequence[Expr], states: Sequence[Expr],
    backwards: bool,
) -> tuple[Expr, list[Expr]]:  # fmt: skip
    starts = [sum(counts[:place]) for place in range(len(counts))]
    outputs: dict[int, Expr] = {}
    whole = list(states)
    for place in range(len(counts) - 1, -1, -1) if backwards else range(len(counts)):
        count = counts[place]
        step = relay.strided_slice(data, [starts[place]], [starts[place] + count], axes=[0])
        own = [_first(node, state, count) for state in whole]
        following = _cell_step(node, cell, step, own, weights)
        whole = [
            new if node.shape(old) == node.shape(new) else relay.concatenate([new, _behind(old, count)], 0)
            for old, new in zip(whole, following, strict=True)
        ]
        outputs[place] = following[0]
    return relay.concatenate([outputs[place] for place in range(len(counts))], 0), whole


def _first(node: TorchNode, data: Expr, count: int) -> Expr:
    return data if node.shape(data)[0] == count else relay.strided_slice(data, [0], [count], axes=[0])


def _behind(data: Expr, count: int) -> Expr:
    return relay.strided_slice(data, [count], [2**31 - 1], axes=[0])


# Cells


def _cell_step(
    node: TorchNode, cell: str, data: Expr, states: Sequence[Expr], weights: Sequence[Expr | None]
) -> list[Expr]:
    """The states after one step."""
    new: Expr
    weight, state_weight, bias, state_bias = [*weights, None, None][:4]
    assert weight is not None and state_weight is not None
    of_input = linear(node, data, weight, bias)
    of_state = linear(node, states[0], state_weight, state_bias)
    axis = node.rank(of_input) - 1
    if cell == "lstm":
        put, forget, new, out = relay.split(relay.add(of_input, of_state), 4, axis)
        kept = relay.multiply(relay.sigmoid(forget), states[1])
        following = relay.add(kept, relay.multiply(relay.sigmoid(put), relay.tanh(new)))
        return [relay.multiply(relay.sigmoid(out), relay.tanh(following)), following]
    if cell == "gru":
        ours, theirs = relay.split(of_input, 3, axis), relay.split(of_state, 3, axis)
        reset = relay.sigmoid(relay.add(ours[0], theirs[0]))
        update = relay.sigmoid(relay.add(ours[1], theirs[1]))
        new = relay.tanh(relay.add(ours[2], relay.multiply(reset, theirs[2])))
        return [relay.add(new, relay.multiply(update, relay.subtract(states[0], new)))]
    total = relay.add(of_input, of_state)
    return [relay.tanh(total) if cell == "tanh" else relay.nn.relu(total)]


@converter("aten::lstm_cell")
def lstm_cell(
    node: TorchNode, input: Expr, hx: list[Expr], w_ih: Expr, w_hh: Expr, b_ih: Expr | None = None,
    b_hh: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    """One step of long short-term memory."""
    return _cell_step(node, "lstm", input, hx, (w_ih, w_hh, b_ih, b_hh))


@converter("aten::gru_cell", "aten::rnn_tanh_cell", "aten::rnn_relu_cell")
def gru_cell(
    node: TorchNode, input: Expr, hx: Expr, w_ih: Expr, w_hh: Expr, b_ih: Expr | None = None,
    b_hh: Expr | None = None,
) -> Expr:  # fmt: skip
    """One step of the other cells."""
    cell = "gru" if "gru" in node.op_type else "relu" if "relu" in node.op_type else "tanh"
    return _cell_step(node, cell, input, [hx], (w_ih, w_hh, b_ih, b_hh))[0]
