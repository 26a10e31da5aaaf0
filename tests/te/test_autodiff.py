"""Gradients of tensor expressions, against PyTorch-like closed forms and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.expr import Reduce
from tilewright.support.errors import ExpressionError


def gradient_of(
    output: te.Tensor, inputs: list[te.Tensor], values: list[np.ndarray], head: np.ndarray
) -> list[np.ndarray]:
    """The gradients of the output by its inputs, times ``head``."""
    given = te.placeholder([int(extent) for extent in output.shape], name="head", dtype=output.dtype)
    gradients = te.gradient(output, inputs, given)
    results = [np.zeros_like(value) for value in values]
    schedule = te.create_schedule([one.op for one in gradients])
    tvm.build(schedule, [*inputs, given, *gradients], "llvm")(*values, head, *results)
    return results


def test_a_matrix_product_stays_one() -> None:
    """The gradient of a product is a product: one reduction axis, no conditions."""
    a, b = te.placeholder((4, 5), name="A"), te.placeholder((5, 6), name="B")
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute((4, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    generator = np.random.default_rng(0)
    left, right, head = (generator.random(shape, dtype="float32") for shape in ((4, 5), (5, 6), (4, 6)))
    by_a, by_b = gradient_of(c, [a, b], [left, right], head)
    np.testing.assert_allclose(by_a, head @ right.T, rtol=1e-5)
    np.testing.assert_allclose(by_b, left.T @ head, rtol=1e-5)
    (symbolic,) = te.gradient(c, [a], te.placeholder((4, 6)))
    (body,) = symbolic.op.body
    assert isinstance(body, Reduce) and len(body.axis) == 1
    assert "if_then_else" not in str(body)


CASES: dict[str, Callable[[te.Tensor], te.Tensor]] = {
    "exp_times": lambda x: te.compute((7,), lambda i: te.exp(x[i]) * x[i]),
    "division": lambda x: te.compute((7,), lambda i: te.log(x[i]) / (x[i] + 1.0)),
    "trigonometry": lambda x: te.compute(
        (7,), lambda i: te.sin(x[i]) * te.cos(x[i]) + te.tan(x[i]) - te.atan(x[i])
    ),
    "roots": lambda x: te.compute((7,), lambda i: te.sqrt(x[i]) + te.rsqrt(x[i]) + te.power(x[i], 2.5)),
    "saturating": lambda x: te.compute((7,), lambda i: te.tanh(x[i]) + te.sigmoid(x[i]) + te.erf(x[i])),
    "stencil": lambda x: te.compute((5,), lambda i: x[i] * x[i + 1] - x[i + 2]),
    "strided": lambda x: te.compute((3,), lambda i: x[i * 2] * 3.0),
    "reversed": lambda x: te.compute((7,), lambda i: x[6 - i] * x[i]),
    "select": lambda x: te.compute((7,), lambda i: tir.Select(x[i] > 0.7, x[i] * x[i], 2.0 * x[i])),
    "guarded": lambda x: te.compute(
        (9,), lambda i: te.if_then_else(te.all(i >= 1, i < 8), x[i - 1] * 2.0, 0.0)
    ),
    "clamp": lambda x: te.compute((7,), lambda i: tir.max(tir.min(x[i] * 2.0, 1.2), 0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_against_finite_differences(name: str) -> None:
    """The gradient is the slope of the compiled program itself."""
    x = te.placeholder((7,), name="X", dtype="float64")
    y = CASES[name](x)
    forward = tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    generator = np.random.default_rng(3)
    point = generator.uniform(0.3, 1.1, 7)
    head = generator.random([int(extent) for extent in y.shape])
    (found,) = gradient_of(y, [x], [point], head)

    def value(at: np.ndarray) -> float:
        result = np.zeros(head.shape)
        forward(at, result)
        return float((result * head).sum())

    step = 1e-6
    slopes = [(value(point + step * unit) - value(point - step * unit)) / (2 * step) for unit in np.eye(7)]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "product"])
def test_reductions(kind: str) -> None:
    """Through sums, extrema, and any other reduction by pairs of value and slope."""
    x = te.placeholder((3, 4), name="X")
    k = te.reduce_axis((0, 4), name="k")
    product = te.comm_reducer(lambda a, b: a * b, lambda t: tir.const(1, t))
    reducers: dict[str, Any] = {"sum": te.sum, "max": te.max, "min": te.min, "product": product}
    y = te.compute((3,), lambda i: reducers[kind](x[i, k] * x[i, k], axis=k), name="Y")
    generator = np.random.default_rng(1)
    values, head = generator.uniform(0.5, 2, (3, 4)).astype("float32"), generator.random(3, dtype="float32")
    if kind == "product":
        values[0, 0] = 0
    (found,) = gradient_of(y, [x], [values], head)
    squares = values**2
    by_square = {
        "sum": np.ones_like(values),
        "max": squares == squares.max(1, keepdims=True),
        "min": squares == squares.min(1, keepdims=True),
        "product": np.array([[np.prod(np.delete(row, j)) for j in range(4)] for row in squares]),
    }[kind]
    np.testing.assert_allclose(found, head[:, None] * by_square * 2 * values, rtol=1e-4)


def test_a_chain_with_several_readers() -> None:
    """Contributions of all readers are added; without a head the result is the Jacobian."""
    x = te.placeholder((4,), name="X")
    k = te.reduce_axis((0, 4), name="k")
    e = te.compute((4,), lambda i: te.exp(x[i]), name="E")
    total = te.compute((1,), lambda i: te.sum(e[k], axis=k), name="S")
    y = te.compute((4,), lambda i: e[i] / total[0], name="Y")
    (jacobian,) = te.gradient(y, [x])
    values, result = np.array([0.1, -0.4, 0.7, 0.2], "float32"), np.zeros((4, 4), "float32")
    tvm.build(te.create_schedule(jacobian.op), [x, jacobian], "llvm")(values, result)
    p = np.exp(values) / np.exp(values).sum()
    np.testing.assert_allclose(result, np.diag(p) - np.outer(p, p), rtol=1e-5, atol=1e-7)


def test_what_is_not_read_has_no_gradient() -> None:
    """The gradient by an input that the output does not depend on is zero."""
    x, z = te.placeholder((3,), name="X"), te.placeholder((2,), name="Z")
    y = te.compute((3,), lambda i: x[i] * 2.0, name="Y")
    (by_z,) = te.gradient(y, [z], te.placeholder((3,)))
    result = np.ones(2, "float32")
    tvm.build(te.create_schedule(by_z.op), [z, by_z], "llvm")(np.ones(2, "float32"), result)
    assert result.tolist() == [0, 0]


def test_what_has_no_gradient_is_refused() -> None:
    """Integers, scans and functions without a rule."""
    x = te.placeholder((3,), name="X")
    whole = te.placeholder((3,), name="I", dtype="int32")
    with pytest.raises(ExpressionError, match="floats"):
        te.gradient(te.compute((3,), lambda i: x[i]), [whole])
    with pytest.raises(ExpressionError, match="no rule"):
        te.gradient(te.compute((3,), lambda i: tir.call_pure_extern("float32", "mystery", x[i])), [x])
    with pytest.raises(ExpressionError, match="head has 1 dimensions"):
        te.gradient(te.compute((3, 3), lambda i, j: x[i]), [x], te.placeholder((3,)))
