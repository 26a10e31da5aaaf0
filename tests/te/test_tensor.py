"""Tensors: elements, identity, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import ProducerLoad
from tilewright.ir.serialize import load_json, save_json
from tilewright.support.errors import ExpressionError


def test_an_element_is_a_read() -> None:
    """Indexing with all indices gives a read, also when they come one at a time."""
    a = te.placeholder((3, 4), name="A", dtype="int8")
    i, j = te.var("i"), te.var("j")
    for element in (a[i, j].asobject(), a[i][j].asobject(), a(i, j)):
        assert isinstance(element, ProducerLoad)
        assert element.producer is a
        assert [index.name for index in element.indices] == ["i", "j"]
        assert element.dtype == "int8"


def test_arithmetic_on_elements_promotes() -> None:
    """Elements take part in expressions as values of their type."""
    a = te.placeholder((3,), name="A", dtype="int32")
    assert (a[0] + 1.5).dtype == "float32"
    assert (a[0] // 2).dtype == "int32"
    with pytest.raises(ExpressionError, match="ambiguous"):
        a[0] / 2


def test_outputs_are_unique() -> None:
    """An operation gives the same tensor object each time, so tensors can be keys."""
    a = te.placeholder((3,), name="A")
    assert a.op.output(0) is a
    assert bool(a == a.op.output(0))
    assert {a: 1}[a.op.output(0)] == 1
    assert a != te.placeholder((3,), name="A")
    with pytest.raises(ExpressionError, match="no number 1"):
        a.op.output(1)


def test_a_tensor_without_dimensions_is_its_element() -> None:
    """It may stand in an expression as it is."""
    scalar = te.placeholder((), name="S")
    b = te.compute((2,), lambda i: scalar() * 2.0 + scalar, name="B")
    assert b.op.input_tensors == (scalar,)


def test_a_constant_without_dimensions_stays_a_tensor() -> None:
    """A division by it is one of the program, which may never be computed, and not one that is folded."""
    zero = te.compute((), lambda: tvm.tir.const(0, "int32"), name="zero", tag="elemwise")
    quotient = te.placeholder((3,), "int32", name="A") / zero
    assert zero in quotient.op.input_tensors


@pytest.mark.parametrize(
    ("indices", "message"),
    [((0,), "2 dimensions"), ((0, 1, 2), "2 dimensions"), ((0, 1.5), "must be an integer")],
)
def test_wrong_indices_are_refused(indices: tuple[object, ...], message: str) -> None:
    """Too few, too many or no integers: the message names the tensor."""
    a = te.placeholder((3, 4), name="input_tensor")
    with pytest.raises(ExpressionError, match=f"(?s)input_tensor.*{message}|{message}.*input_tensor"):
        a(*indices)


def test_a_tensor_is_no_condition() -> None:
    """Comparisons of elements cannot be used as Python conditions."""
    a = te.placeholder((3,), name="A")
    with pytest.raises(ExpressionError, match="if_then_else"):
        bool(a[0] < 1)
    assert isinstance(tvm.TVMError("x"), RuntimeError)


def test_whole_tensors_have_arithmetic_without_topi() -> None:
    """Operators of whole tensors work in a program that never imports ``topi``."""
    program = (
        "import tilewright as tvm; from tilewright import te; a = te.placeholder((2, 3));"
        "print(*[one.op.name for one in (a + a, 2 * a, a / 2, -a, a.astype(dtype='int32'))])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.split()[:3] == ["T_add", "T_multiply", "T_divide"]


def test_parts_of_tensors_cannot_be_iterated() -> None:
    """A loop over a part of a tensor is an error, not a loop without end."""
    a = te.placeholder((2, 3))
    for part in (a, a[0]):
        with pytest.raises(TypeError, match="index it with axes"):
            list(part)


def test_an_element_and_a_tensor_make_a_tensor() -> None:
    """Expressions leave arithmetic with whole tensors to the tensor, on either side."""
    a, x = te.placeholder((2, 3), name="a"), te.var("x", "float32")
    for made in (x + a, a[0, 0] - a, a[0, 0].asobject() * a, a / x, x / a):
        assert isinstance(made, te.Tensor) and made.ndim == 2
    scalar = te.placeholder((), name="s")
    for made in (
        x + scalar,
        scalar - 1.0,
        scalar * scalar,
        a[0, 0] / scalar,
        -scalar,
        scalar.astype("int32"),
    ):
        assert isinstance(made, te.Tensor) and made.shape == ()


def test_arithmetic_on_a_scalar_becomes_part_of_its_user() -> None:
    """Inside a computation it may use that computation's axes, and no stage is added for it."""
    a, scalar = te.placeholder((4,), name="A"), te.placeholder((), name="s")
    b = te.compute((4,), lambda i: (a[i] + scalar) * 2.0 - scalar, name="B")
    assert b.op.input_tensors == (a, scalar)
    s = te.create_schedule(b.op)
    assert [stage.op.name for stage in s.stages] == ["A", "s", "B"]
    out = tvm.nd.empty((4,))
    tvm.build(s, [a, scalar, b], "llvm")(
        tvm.nd.array(np.float32([0, 1, 2, 3])), tvm.nd.array(np.float32(5)), out
    )
    np.testing.assert_array_equal(out.numpy(), np.float32([5, 7, 9, 11]))


def test_json_of_tensors() -> None:
    """A graph of tensors comes back whole: what one reads is what the other gives."""
    a = te.placeholder((2, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    b = te.compute((2,), lambda i: te.sum(a[i, k], axis=k), name="B")
    _, d = te.compute((2,), lambda i: (b[i], b[i] + 1), name="CD")
    read_b, read_d = load_json(save_json([b, d]))
    assert read_d.value_index == 1 and read_d.op.num_outputs == 2 and read_d.op.output(1) is read_d
    assert read_d.op.input_tensors == (read_b,) and read_b.op.output(0) is read_b
    assert str(read_b.op.body[0]) == str(b.op.body[0])


def test_whole_floats_are_extents():
    """``n / 2`` is a float in Python: where it is a whole number, it is that."""
    a = te.placeholder((8 / 2, 3), name="A")
    b = te.compute((4.0, 3), lambda i, j: a[i, j] + 1, name="B")
    assert [extent.value for extent in (*a.shape, *b.shape)] == [4, 3, 4, 3]
    assert str(a.shape[0].dtype) == "int32"
    with pytest.raises(ExpressionError, match=r"dimension 0 of A is 2.5, not an integer"):
        te.placeholder((2.5,), name="A")
