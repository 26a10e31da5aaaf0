"""Placeholders, computations and axes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.expr import IterVar, Reduce
from tilewright.support.errors import ExpressionError


def test_axes_are_named_after_parameters() -> None:
    """Parameters name axes; a function that takes any number gets i0, i1, ..."""
    a = te.placeholder((2, 3), name="A")
    named = te.compute((2, 3), lambda row, column: a[row, column], name="B")
    assert [axis.var.name for axis in named.op.axis] == ["row", "column"]
    some = te.compute((2, 3), lambda *all_: a(*all_), name="C")
    assert [axis.var.name for axis in some.op.axis] == ["i0", "i1"]
    assert named.dtype == "float32" and [int(extent) for extent in named.shape] == [2, 3]


def test_a_tuple_gives_several_tensors() -> None:
    """Each value is an output of one operation."""
    a = te.placeholder((4,), name="A")
    plus, cast = te.compute((4,), lambda i: (a[i] + 1.0, a[i].astype("int32")), name="T")
    assert plus.op is cast.op and plus.op.num_outputs == 2
    assert (plus.dtype, cast.dtype) == ("float32", "int32")
    assert (plus.name, cast.name) == ("T.v0", "T.v1")


def test_reduction_axes_are_found() -> None:
    """A reduction's axes are the operation's."""
    a = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    assert isinstance(b.op.body[0], Reduce)
    assert b.op.reduce_axis == (k,) and k.iter_type == IterVar.CommReduce


def test_a_reduction_is_the_whole_expression() -> None:
    """A reduction inside an expression is refused with what to do."""
    a = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    with pytest.raises(ExpressionError, match="separate tensor"):
        te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1.0, name="B")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: te.compute((4, 5), lambda i: i), "2 dimensions, its function takes 1"),
        (lambda: te.compute((4,), lambda i: None), "returned nothing"),
        (lambda: te.compute((4.5,), lambda i: i), "not an integer"),
        (lambda: te.compute((-1,), lambda i: i), "negative"),
        (lambda: te.compute((4,), lambda i: "text"), "not a number"),
        (lambda: te.thread_axis(), "needs a tag"),
        (lambda: te.reduce_axis(5), "pair"),
    ],
)
def test_wrong_computations_are_refused(make: object, message: str) -> None:
    """The message says what is wrong and names the line of this file."""
    with pytest.raises(ExpressionError, match=message) as caught:
        make()  # type: ignore[operator]
    assert "test_operation.py" in str(caught.value)


def test_tags_come_from_the_scope() -> None:
    """A tag scope gives its tag to what is made inside; a second tag is refused."""
    a = te.placeholder((4,), name="A")
    with te.tag_scope("mine"):
        b = te.compute((4,), lambda i: a[i], name="B")
        with pytest.raises(ExpressionError, match="tag_scope"):
            te.compute((4,), lambda i: a[i], name="C", tag="other")

    @te.tag_scope("decorated")
    def make() -> te.Tensor:
        return te.compute((4,), lambda i: a[i], name="D")

    assert (b.op.tag, make().op.tag) == ("mine", "decorated")
    assert te.TagScope.get_current() is None


def test_attributes_are_kept() -> None:
    """Attributes travel with the operation."""
    a = te.placeholder((4,), name="A")
    assert te.compute((4,), lambda i: a[i], attrs={"answer": 42}).op.attrs["answer"] == 42


def test_size_variables_are_not_negative() -> None:
    """A size variable makes a shape whose extent is known not to be negative."""
    n = te.size_var("n")
    assert isinstance(n, tir.SizeVar)
    assert tvm.arith.Analyzer().can_prove(n >= 0)


def test_reducers_with_a_condition() -> None:
    """Elements where the condition is false do not take part."""
    a = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k, where=k.var % 2 == 0), name="B")
    values = np.arange(24, dtype="float32").reshape(4, 6)
    result = np.zeros(4, "float32")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(values, result)
    np.testing.assert_allclose(result, values[:, ::2].sum(1))


def test_mathematical_intrinsics_compute() -> None:
    """Functions of te are those of NumPy."""
    a = te.placeholder((64,), name="A")
    functions = [
        "exp",
        "log",
        "sqrt",
        "tanh",
        "sin",
        "cos",
        "floor",
        "ceil",
        "abs",
        "erf",
        "sigmoid",
        "rsqrt",
        "atan",
    ]
    outputs = [
        te.compute((64,), lambda i, name=name: getattr(te, name)(a[i]), name=name) for name in functions
    ]
    values = np.linspace(0.1, 4, 64, dtype="float32")
    results = [np.zeros(64, "float32") for _ in functions]
    tvm.build(te.create_schedule([one.op for one in outputs]), [a, *outputs], "llvm")(values, *results)
    wide = values.astype("float64")
    from scipy import special

    wanted = {
        "erf": special.erf,
        "sigmoid": special.expit,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "atan": np.arctan,
    }
    for name, result in zip(functions, results, strict=True):
        np.testing.assert_allclose(
            result, wanted.get(name, getattr(np, name, None))(wide), rtol=1e-5, atol=1e-6
        )
