"""Scans."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import ExpressionError


def cumulative() -> tuple[te.Tensor, te.Tensor]:
    """Running sums over the first axis."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    return x, te.scan(init, update, state, inputs=[x], name="scan")


def test_cumulative_sum() -> None:
    """A scan computes every step from the one before."""
    x, y = cumulative()
    values = np.random.default_rng(0).random((7, 5), dtype="float32")
    result = np.zeros_like(values)
    tvm.build(te.create_schedule(y.op), [x, y], "llvm")(values, result)
    np.testing.assert_allclose(result, values.cumsum(0), rtol=1e-6)


def test_the_update_can_be_scheduled() -> None:
    """Stages of a scan are split and vectorised like any other."""
    x, y = cumulative()
    s = te.create_schedule(y.op)
    _, inner = s[y.op.update[0]].split(y.op.update[0].op.axis[1], factor=4)
    s[y.op.update[0]].vectorize(inner)
    values = np.random.default_rng(0).random((6, 9), dtype="float32")
    result = np.zeros_like(values)
    tvm.build(s, [x, y], "llvm")(values, result)
    np.testing.assert_allclose(result, values.cumsum(0), rtol=1e-6)


def test_a_step_in_two_stages() -> None:
    """What lies between the state and the update is computed inside the scan's loop."""
    n = 6
    x = te.placeholder((8, n), name="X")
    state = te.placeholder((8, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    half = te.compute((8, n), lambda t, i: state[t - 1, i] * 0.5, name="half")
    update = te.compute((8, n), lambda t, i: half[t, i] + x[t, i], name="update")
    y = te.scan(init, update, state, inputs=[x])
    values = np.random.default_rng(0).random((8, n), dtype="float32")
    expected = values.copy()
    for t in range(1, 8):
        expected[t] = expected[t - 1] * 0.5 + values[t]
    for place_half in (False, True):
        s = te.create_schedule(y.op)
        if place_half:
            s[half].compute_at(s[update], s[update].op.axis[1])
        result = np.zeros_like(values)
        tvm.build(s, [x, y], "llvm")(values, result)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_two_states() -> None:
    """A scan over a pair of tensors: Fibonacci's numbers."""
    x = te.placeholder((10,), name="X", dtype="int32")
    a, b = te.placeholder((10,), dtype="int32"), te.placeholder((10,), dtype="int32")
    starts = [te.compute((1,), lambda _: x[0]), te.compute((1,), lambda _: x[1])]
    steps = [te.compute((10,), lambda t: b[t - 1]), te.compute((10,), lambda t: a[t - 1] + b[t - 1])]
    first, second = te.scan(starts, steps, [a, b], inputs=[x])
    values = np.array([0, 1] + [0] * 8, "int32")
    one, two = np.zeros(10, "int32"), np.zeros(10, "int32")
    tvm.build(te.create_schedule(first.op), [x, first, second], "llvm")(values, one, two)
    assert one.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert two.tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_scans_that_do_not_fit_are_refused() -> None:
    """Types, dimensions and states are checked."""
    x = te.placeholder((4, 3), name="X")
    init = te.compute((1, 3), lambda _, i: x[0, i])
    with pytest.raises(ExpressionError, match="must be a placeholder"):
        te.scan(init, x, te.compute((4, 3), lambda t, i: x[t, i]))
    with pytest.raises(ExpressionError, match="dimensions"):
        te.scan(init, x, te.placeholder((4,)))
    with pytest.raises(ExpressionError, match="types"):
        te.scan(init, x, te.placeholder((4, 3), dtype="float64"))
    with pytest.raises(ExpressionError, match="1 init, 1 update and 2 state"):
        te.scan(init, x, [te.placeholder((4, 3)), te.placeholder((4, 3))])


def test_one_input_needs_no_list() -> None:
    """Inputs, states, starts and updates may be given as they are."""
    x, state = te.placeholder((4, 3), name="X"), te.placeholder((4, 3))
    init = te.compute((1, 3), lambda _, i: x[0, i])
    update = te.compute((4, 3), lambda t, i: state[t - 1, i] + x[t, i])
    assert te.scan(init, update, state, inputs=x).op.inputs == (x,)
