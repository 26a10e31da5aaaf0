"""Operations with statements as bodies."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import ExpressionError


def test_a_registered_function_computes() -> None:
    """A packed function of Python sees the tensors' memory, between compiled stages."""
    tvm.register_func(
        "tests.te.extern.add_one", lambda source, target: target.copyfrom(source.numpy() + 1), override=True
    )
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] * 2.0, name="B")
    c = te.extern(
        (6,), [b], lambda ins, outs: tir.call_packed("tests.te.extern.add_one", ins[0], outs[0]), name="C"
    )
    d = te.compute((6,), lambda i: c[i] * 10.0, name="D")
    values, result = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    tvm.build(te.create_schedule(d.op), [a, d], "llvm")(values, result)
    np.testing.assert_allclose(result, (values * 2 + 1) * 10)


def test_an_exception_in_a_registered_function_comes_back() -> None:
    """It reappears with its type and message."""

    def fail(*_: object) -> None:
        raise ValueError("no such luck")

    tvm.register_func("tests.te.extern.fail", fail, override=True)
    a = te.placeholder((6,), name="A")
    c = te.extern((6,), [a], lambda ins, outs: tir.call_packed("tests.te.extern.fail", ins[0], outs[0]))
    function = tvm.build(te.create_schedule(c.op), [a, c], "llvm")
    with pytest.raises(ValueError, match="no such luck"):
        function(np.zeros(6, "float32"), np.zeros(6, "float32"))


def test_loops_written_with_the_builder() -> None:
    """The body may be any statement, over symbolic shapes too."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, n, "i", kind="parallel") as i:
            with builder.if_scope(i < 3):
                target[i] = source[i] + 3.0
            with builder.else_scope():
                target[i] = source[i] * 2.0
        return builder.get()

    b = te.extern((n,), [a], body, name="B")
    values, result = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    np.testing.assert_allclose(result, np.where(np.arange(8) < 3, values + 3, values * 2))


def test_several_outputs_and_types() -> None:
    """A list of shapes gives a list of tensors, each of its type."""
    a = te.placeholder((5,), name="A")

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source = builder.buffer_ptr(ins[0])
        double, whole = (builder.buffer_ptr(out) for out in outs)
        with builder.for_range(0, 5, "i") as i:
            double[i] = source[i] * 2.0
            whole[i] = source[i].astype("int32")
        return builder.get()

    double, whole = te.extern([(5,), (5,)], [a], body, dtype=["float32", "int32"])
    values = np.array([0.5, 1.5, -2.5, 3.0, 9.9], "float32")
    results = [np.zeros(5, "float32"), np.zeros(5, "int32")]
    tvm.build(te.create_schedule(double.op), [a, double, whole], "llvm")(values, *results)
    np.testing.assert_allclose(results[0], values * 2)
    assert results[1].tolist() == [0, 1, -2, 3, 9]


def test_mistakes_are_refused() -> None:
    """A type that cannot be told, a body that is not a statement, buffers that do not fit."""
    a, b = te.placeholder((5,), name="A"), te.placeholder((5,), name="B", dtype="int8")
    with pytest.raises(ExpressionError, match="give dtype"):
        te.extern((5,), [a, b], lambda ins, outs: tir.Evaluate(0))
    with pytest.raises(ExpressionError, match="not a statement"):
        te.extern((5,), [a], lambda ins, outs: "nothing")
    with pytest.raises(ExpressionError, match="1 inputs and 2 in_buffers"):
        te.extern(
            (5,), [a], lambda ins, outs: tir.Evaluate(0), in_buffers=[tir.decl_buffer(5), tir.decl_buffer(5)]
        )
    with pytest.raises(ExpressionError, match="reads tensors"):
        te.extern((5,), [1], lambda ins, outs: tir.Evaluate(0))  # type: ignore[list-item]
