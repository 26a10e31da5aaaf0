"""The statements of computations: initialisation, update and their guards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts, random

import tilewright as tvm
from tilewright import te, tir
from tilewright.driver.build_module import schedule_to_module


def rows(m: Any = 6, n: Any = 9) -> tuple[te.Tensor, te.Tensor, te.Schedule]:
    """Sums of rows, as a column in two dimensions."""
    a = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((m, 2), lambda i, j: te.sum(a[i, k], axis=k), name="B")
    return a, b, te.create_schedule(b.op)


def test_the_initialisation_stands_before_the_first_reduction_loop() -> None:
    """Loops outside it are shared; data loops inside it are repeated for it."""
    a, b, s = rows()
    s[b].reorder(b.op.axis[0], b.op.reduce_axis[0], b.op.axis[1])
    function = schedule_to_module(s, [a, b])["main"]
    assert sorted(loop.loop_var.name for loop in parts(function, tir.For)) == ["i", "j", "j.init", "k"]
    values = random(6, 9)
    check(s, [a, b], [values], np.repeat(values.sum(1)[:, None], 2, axis=1))


def test_a_reduction_outermost() -> None:
    """All is initialised first, then every iteration adds to all."""
    a, b, s = rows(te.var("m"), te.var("n"))
    k_outer, k_inner = s[b].split(b.op.reduce_axis[0], factor=4)
    s[b].reorder(k_outer, *b.op.axis, k_inner)
    values = random(6, 9)
    check(s, [a, b], [values], np.repeat(values.sum(1)[:, None], 2, axis=1))


def test_an_empty_reduction_gives_its_identity() -> None:
    """A sum over nothing is zero, a maximum the least value."""
    n = te.var("n")
    a = te.placeholder((3, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="S")
    most = te.compute((3,), lambda i: te.max(a[i, k], axis=k), name="M")
    for tensor, wanted in ((total, 0.0), (most, -np.inf)):
        s = te.create_schedule(tensor.op)
        check(s, [a, tensor], [np.zeros((3, 0), "float32")], np.full(3, wanted, "float32"))


def test_an_initial_value() -> None:
    """``init`` starts the reduction, also split and reordered."""
    a = te.placeholder((4, 5), name="A")
    start = te.placeholder((4,), name="I")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k, init=start[i]), name="B")
    s = te.create_schedule(b.op)
    outer, _ = s[b].split(k, factor=2)
    s[b].reorder(outer, b.op.axis[0])
    values, first = random(4, 5), random(4) * 10
    check(s, [a, start, b], [values, first], values.sum(1) + first)


def test_a_pair_is_computed_before_it_is_stored() -> None:
    """Each part of a tuple sees the parts of the step before."""
    fibonacci = te.comm_reducer(
        lambda x, y: (x[0] + x[1] + y[0], x[0] + y[1]), lambda s, t: (tir.const(1, s), tir.const(0, t))
    )
    k = te.reduce_axis((0, 6), name="k")
    zero = te.placeholder((6,), name="Z", dtype="int32")
    one, two = te.compute((1,), lambda i: fibonacci((zero[k], zero[k]), axis=k), name="F")
    s = te.create_schedule(one.op)
    check(s, [zero, one, two], [np.zeros(6, "int32")], [np.array([13], "int32"), np.array([8], "int32")])


@pytest.mark.parametrize("factor", [2, 4, 5])
def test_a_place_that_needs_more_than_the_domain(factor: int) -> None:
    """A producer placed in a block that runs past the end is guarded by its own domain."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((n,), lambda i: te.if_then_else(i > 0, b[i - 1], 0.0) + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=factor)
    s[b].compute_at(s[c], outer)
    values = random(11)
    twice = values * 2
    check(s, [a, c], [values], twice + np.concatenate([[0], twice[:-1]]).astype("float32"))


def test_a_tensor_without_dimensions() -> None:
    """A stage without axes is a store."""
    a = te.placeholder((), name="A")
    b = te.compute((), lambda: a() * 2.0, name="B")
    c = te.compute((3,), lambda i: b() + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    check(s, [a, c], [np.array(4, "float32")], np.full(3, 9, "float32"))


def test_a_reduction_that_runs_as_far_as_its_element_says():
    """The range of a reduction may depend on the element that is computed."""
    x = te.placeholder((6,), name="x")

    def total(n):
        k = te.reduce_axis((0, n), name="k")
        return te.sum(x[k], axis=k)

    y = te.compute((6,), total, name="y")
    function = tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    values, result = np.arange(6, dtype="float32"), tvm.nd.array(np.zeros(6, "float32"))
    function(tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), [values[:n].sum() for n in range(6)])
