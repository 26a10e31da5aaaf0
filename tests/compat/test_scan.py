"""Recurrences as a tutorial on scans shows them."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import te
from tilewright.tir.interpreter import interpret


def cumulative_sum() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    """Running sums over the rows of a matrix of any size."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: x[0, i])
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + x[t, i])
    return x, s_init, s_update, tvm.te.scan(s_init, s_update, s_state, inputs=[x])


def schedule_on_threads() -> tuple[te.Schedule, te.Tensor, te.Tensor]:
    """Columns over blocks and threads, for the first step and for the others."""
    x, s_init, s_update, s_scan = cumulative_sum()
    s = te.create_schedule(s_scan.op)
    num_thread = 256
    block_x = te.thread_axis("blockIdx.x")
    thread_x = te.thread_axis("threadIdx.x")
    xo, xi = s[s_init].split(s_init.op.axis[1], factor=num_thread)
    s[s_init].bind(xo, block_x)
    s[s_init].bind(xi, thread_x)
    xo, xi = s[s_update].split(s_update.op.axis[1], factor=num_thread)
    s[s_update].bind(xo, block_x)
    s[s_update].bind(xi, thread_x)
    return s, x, s_scan


def test_cumulative_sum_on_threads() -> None:
    """It lowers, prints as CUDA, and gives the right numbers thread by thread."""
    s, x, s_scan = schedule_on_threads()
    text = str(tvm.lower(s, [x, s_scan], simple_mode=True))
    assert "blockIdx.x" in text
    source = tvm.build(s, [x, s_scan], "cuda", name="cumsum").imported_modules[0].get_source()
    assert "__global__" in source
    values = np.random.uniform(size=(4, 10)).astype("float32")
    result = np.zeros_like(values)
    interpret(tvm.lower(s, [x, s_scan])["main"], values, result)
    tvm.testing.assert_allclose(result, np.cumsum(values, axis=0), rtol=1e-5)


def test_steps_of_several_stages() -> None:
    """A step may take several stages; one of them is placed inside of another."""
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: x[0, i])
    s_update_s1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] * 2.0, name="s1")
    s_update_s2 = te.compute((m, n), lambda t, i: s_update_s1[t, i] + x[t, i], name="s2")
    s_scan = tvm.te.scan(s_init, s_update_s2, s_state, inputs=[x])
    s = te.create_schedule(s_scan.op)
    xo, _ = s[s_update_s2].split(s_update_s2.op.axis[1], factor=32)
    s[s_update_s1].compute_at(s[s_update_s2], xo)
    values = np.random.uniform(size=(5, 40)).astype("float32")
    result = np.zeros_like(values)
    tvm.build(s, [x, s_scan], "llvm")(values, result)
    expected = values.copy()
    for t in range(1, 5):
        expected[t] += expected[t - 1] * 2
    tvm.testing.assert_allclose(result, expected, rtol=1e-5)


def test_several_states() -> None:
    """A scan over two tensors of different shapes."""
    m, n, l = te.var("m"), te.var("n"), te.var("l")
    x = te.placeholder((m, n), name="X")
    s_state1 = te.placeholder((m, n))
    s_state2 = te.placeholder((m, l))
    s_init1 = te.compute((1, n), lambda _, i: x[0, i])
    s_init2 = te.compute((1, l), lambda _, i: 0.0)
    s_update1 = te.compute((m, n), lambda t, i: s_state1[t - 1, i] + x[t, i])
    s_update2 = te.compute((m, l), lambda t, i: s_state2[t - 1, i] + s_state1[t - 1, 0])
    s_scan1, s_scan2 = tvm.te.scan(
        [s_init1, s_init2], [s_update1, s_update2], [s_state1, s_state2], inputs=[x]
    )
    s = te.create_schedule(s_scan1.op)
    values = np.random.uniform(size=(6, 3)).astype("float32")
    one, two = np.zeros((6, 3), "float32"), np.zeros((6, 4), "float32")
    tvm.build(s, [x, s_scan1, s_scan2], "llvm")(values, one, two)
    sums = values.cumsum(axis=0)
    tvm.testing.assert_allclose(one, sums, rtol=1e-5)
    totals = np.concatenate([[0], sums[:-1, 0].cumsum()])
    tvm.testing.assert_allclose(two, np.repeat(totals[:, None], 4, axis=1), rtol=1e-5)


def test_recurrent_cell() -> None:
    """A cell with gates: its hidden and cell states are scanned together, the gates computed in each step."""
    steps, batch, hidden = 5, 2, 6
    xi2h = te.placeholder((steps, batch, 4, hidden), name="Xi2h")
    weights = te.placeholder((4, hidden, hidden), name="Wh2h")
    c_state = te.placeholder((steps, batch, hidden), name="c_state")
    h_state = te.placeholder((steps, batch, hidden), name="h_state")
    init_c = te.compute((1, batch, hidden), lambda *i: 0.0, name="init_c")
    init_h = te.compute((1, batch, hidden), lambda *i: 0.0, name="init_h")
    k = te.reduce_axis((0, hidden), name="ki2h")
    s_h2h = te.compute(
        (steps, batch, 4, hidden),
        lambda t, i, x, j: te.sum(h_state[t - 1, i, k] * weights[x, j, k], axis=k),
        name="s_h2h",
    )
    gates = te.compute(xi2h.shape, lambda *i: xi2h(*i) + s_h2h(*i), name="gates")
    shape = (steps, batch, hidden)
    in_gate = te.compute(shape, lambda t, i, j: te.sigmoid(gates[t, i, 0, j]), name="in_gate")
    transform = te.compute(shape, lambda t, i, j: te.tanh(gates[t, i, 1, j]), name="in_transform")
    forget = te.compute(shape, lambda t, i, j: te.sigmoid(gates[t, i, 2, j]), name="forget_gate")
    out_gate = te.compute(shape, lambda t, i, j: te.sigmoid(gates[t, i, 3, j]), name="out_gate")
    next_c = te.compute(
        shape,
        lambda t, i, j: forget[t, i, j] * c_state[t - 1, i, j] + in_gate[t, i, j] * transform[t, i, j],
        name="next_c",
    )
    next_h = te.compute(shape, lambda t, i, j: out_gate[t, i, j] * te.tanh(next_c[t, i, j]), name="next_h")
    scan_c, scan_h = tvm.te.scan(
        [init_c, init_h], [next_c, next_h], [c_state, h_state], inputs=[xi2h, weights], name="lstm_scan"
    )
    s = te.create_schedule(scan_h.op)
    for gate in (gates, in_gate, transform, forget, out_gate):
        s[gate].compute_inline()
    generator = np.random.default_rng(0)
    inputs = generator.uniform(-1, 1, (steps, batch, 4, hidden)).astype("float32")
    matrix = generator.uniform(-1, 1, (4, hidden, hidden)).astype("float32")
    c, h = np.zeros(shape, "float32"), np.zeros(shape, "float32")
    tvm.build(s, [xi2h, weights, scan_c, scan_h], "llvm")(inputs, matrix, c, h)

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    want_c, want_h = np.zeros(shape), np.zeros(shape)
    for t in range(1, steps):
        g = inputs[t] + np.einsum("ik,xjk->ixj", want_h[t - 1], matrix)
        want_c[t] = sigmoid(g[:, 2]) * want_c[t - 1] + sigmoid(g[:, 0]) * np.tanh(g[:, 1])
        want_h[t] = sigmoid(g[:, 3]) * np.tanh(want_c[t])
    tvm.testing.assert_allclose(c, want_c, rtol=1e-4, atol=1e-5)
    tvm.testing.assert_allclose(h, want_h, rtol=1e-4, atol=1e-5)
