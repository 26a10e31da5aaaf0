"""Recurrent layers against a loop in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.op.definition import RelationError
from tilewright.support.errors import TilewrightError
from tilewright.topi.nn.recurrent import CELLS, recurrent_block


def _sigmoid(value):
    return 1 / (1 + np.exp(-value))


def _expected(cell, given, weight, states, biases):
    """All hidden states and the last state; gates of ``given`` and ``weight`` lie one after the other."""
    hidden = states[0].shape[1]
    every = []
    for line in given:
        inputs, product = (np.split(one, CELLS[cell].gates, 1) for one in (line, states[0] @ weight.T))
        if cell == "lstm":
            put, out, forget, new = (one + other for one, other in zip(inputs, product, strict=True))
            following = _sigmoid(forget) * states[1] + _sigmoid(put) * np.tanh(new)
            states = [_sigmoid(out) * np.tanh(following), following]
        elif cell == "gru":
            update, reset = (_sigmoid(inputs[gate] + product[gate]) for gate in range(2))
            candidate = np.tanh(inputs[2] + reset * (product[2] + biases[0]))
            states = [(1 - update) * candidate + update * states[0]]
        else:
            total = inputs[0] + product[0]
            states = [np.tanh(total) if cell == "tanh" else np.maximum(total, 0)]
        every.append(states[0])
    assert states[0].shape[1] == hidden
    return [np.stack(every), *states]


def _in_blocks(rows, gates, hidden):
    """(gates * hidden, ...) as (blocks, gates, block, ...)."""
    block = recurrent_block(gates, hidden)
    blocks = -(-hidden // block)
    apart = rows.reshape(gates, hidden, *rows.shape[1:])
    filled = np.zeros((gates, blocks * block, *rows.shape[1:]), rows.dtype)
    filled[:, :hidden] = apart
    return filled.reshape(gates, blocks, block, *rows.shape[1:]).swapaxes(0, 1)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("steps", "batch", "hidden", "dtype"),
    [
        (3, 1, 5, "float32"),
        (4, 3, 16, "float32"),
        (2, 4, 70, "float64"),
        (5, 2, 150, "float32"),
        (3, 7, 33, "float32"),
    ],
)
@pytest.mark.parametrize("executor", ["debug", "graph", "vm"])
def test_layer(cell, steps, batch, hidden, dtype, executor):
    """Every cell, of units that fill their blocks and that do not, in one row and several, on one thread and on all,
    compiled and by the reference; in the virtual machine with an open batch."""
    kind = CELLS[cell]
    random = np.random.default_rng(hidden)

    def draw(*shape):
        return random.normal(size=shape) * 0.5

    given, weight = draw(steps, batch, kind.gates * hidden), draw(kind.gates * hidden, hidden) / 4
    states = [draw(batch, hidden) for _ in range(kind.states)]
    biases = [draw(hidden) for _ in range(kind.biases)]
    packed = [
        _in_blocks(given.transpose(2, 0, 1), kind.gates, hidden)
        .transpose(3, 4, 0, 1, 2)
        .reshape(steps, batch, -1),
        _in_blocks(weight, kind.gates, hidden).transpose(0, 3, 1, 2),
        *states,
        *(np.pad(one, (0, packed_units(kind.gates, hidden) - hidden)) for one in biases),
    ]
    arrays = [np.ascontiguousarray(one, dtype) for one in packed]
    count = 2 + kind.states

    def shape_of(place):
        batch_axis = 1 if place == 0 else 0 if 2 <= place < count else None
        is_open = executor == "vm"
        sizes = enumerate(arrays[place].shape)
        return [relay.Any() if is_open and axis == batch_axis else size for axis, size in sizes]

    parameters = [relay.var(f"p{place}", shape=shape_of(place), dtype=dtype) for place in range(len(arrays))]
    call = relay.nn.contrib_recurrent(
        parameters[0], parameters[1], parameters[2:count], parameters[count:], cell
    )
    module = tvm.IRModule.from_expr(relay.Function(parameters, call.astuple()))
    found = relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()(*arrays)
    for value, wanted in zip(found, _expected(cell, given, weight, states, biases), strict=True):
        np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-5, atol=1e-5)


def packed_units(gates, hidden):
    """The units with those that fill the last block."""
    block = recurrent_block(gates, hidden)
    return -(-hidden // block) * block


@pytest.mark.parametrize(
    ("shapes", "cell", "said"),
    [
        ([(2, 1, 64), (1, 5, 4, 16), (1, 5), (1, 5)], "elman", "one of lstm"),
        ([(2, 1, 64), (1, 5, 4, 16), (1, 5)], "lstm", "takes 4 arguments, not 3"),
        ([(2, 1, 48), (1, 5, 4, 16), (1, 5), (1, 5)], "lstm", "48 is not 64"),
        ([(2, 1, 64), (1, 17, 4, 16), (1, 17), (1, 17)], "lstm", "not those of 17 units"),
        ([(2, 1, 64), (1, 5, 4, 16), (1, 5), (2, 5)], "lstm", "2 is not 1"),
        ([(2, 1, 64), (1, 5, 4, 16), (1, 5), (5,)], "lstm", "two dimensions"),
        ([(2, 64), (1, 5, 4, 16), (1, 5), (1, 5)], "lstm", "three"),
    ],
)
def test_arguments_that_do_not_fit(shapes, cell, said):
    """What does not fit together is said."""
    values = [relay.var(f"p{place}", shape=shape) for place, shape in enumerate(shapes)]
    call = relay.nn.contrib_recurrent(values[0], values[1], values[2:], cell=cell)
    with pytest.raises((RelationError, TilewrightError), match=said):
        relay.transform.InferType()(tvm.IRModule.from_expr(call.astuple()))
