"""Recurrent cells in Relay, step by step over a list of inputs, as TVM's frontends share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.relay import op
from tilewright.relay.infer import infer_expr


def unbind(data: Any, axis: int = 0) -> list[Any]:
    """The tensors along an axis, each without it."""
    shape = infer_expr(data).checked_type.shape
    axis = axis % len(shape)
    parts = op.split(data, int(shape[axis]), axis)
    return [op.squeeze(parts[index], [axis]) for index in range(int(shape[axis]))]


def _linear(data: Any, weights: Any, bias: Any) -> Any:
    made = op.nn.dense(data, weights)
    return made if bias is None else made + bias


def gru_cell(
    input_seqs: Sequence[Any],
    hidden_state: Any,
    w_inp: Any,
    w_hid: Any,
    b_inp: Any = None,
    b_hid: Any = None,
    rz_act: Callable[[Any], Any] = op.sigmoid,
    n_act: Callable[[Any], Any] = op.tanh,
    backwards: bool = False,
    linear_before_reset: bool = True,
) -> tuple[list[Any], Any]:
    """The outputs of a gated recurrent unit for each input, and the last state. Gates are in the order r, z, n."""
    outputs = []
    weights, biases = op.split(w_hid, 3), None if b_hid is None else op.split(b_hid, 3, -1)
    for step in reversed(input_seqs) if backwards else input_seqs:
        from_input = op.split(_linear(step, w_inp, b_inp), 3, axis=-1)
        hidden = [
            op.nn.dense(hidden_state, weights[gate])
            if biases is None
            else op.nn.dense(hidden_state, weights[gate]) + biases[gate]
            for gate in range(2)
        ]
        reset, update = rz_act(from_input[0] + hidden[0]), rz_act(from_input[1] + hidden[1])
        state = hidden_state if linear_before_reset else reset * hidden_state
        inner = _linear(state, weights[2], None if biases is None else biases[2])
        candidate = n_act(from_input[2] + (reset * inner if linear_before_reset else inner))
        hidden_state = (hidden_state - candidate) * update + candidate
        outputs.append(hidden_state)
    return outputs, hidden_state


def lstm_cell(
    input_seqs: Sequence[Any],
    hidden_state: Any,
    cell_state: Any,
    w_inp: Any,
    w_hid: Any,
    b_inp: Any = None,
    b_hid: Any = None,
    proj: Any = None,
    p_i: Any = None,
    p_f: Any = None,
    p_o: Any = None,
    f_act: Callable[[Any], Any] = op.sigmoid,
    g_act: Callable[[Any], Any] = op.tanh,
    h_act: Callable[[Any], Any] = op.tanh,
    backwards: bool = False,
) -> tuple[list[Any], Any, Any]:
    """The outputs of a long short-term memory for each input, the last output and the last cell.

    Gates are in the order i, f, g, o; ``p_*`` are peepholes, ``proj`` projects the output.
    """
    outputs = []
    for step in reversed(input_seqs) if backwards else input_seqs:
        gates = _linear(step, w_inp, b_inp) + _linear(hidden_state, w_hid, b_hid)
        parts = op.split(gates, 4, axis=-1)
        take, forget, new, give = (parts[index] for index in range(4))
        take = f_act(take if p_i is None else take + p_i * cell_state)
        forget = f_act(forget if p_f is None else forget + p_f * cell_state)
        cell_state = forget * cell_state + take * g_act(new)
        give = f_act(give if p_o is None else give + p_o * cell_state)
        hidden_state = give * h_act(cell_state)
        if proj is not None:
            hidden_state = op.nn.dense(hidden_state, proj)
        outputs.append(hidden_state)
    return outputs, hidden_state, cell_state
