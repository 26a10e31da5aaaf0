"""Operators of two tensors and more, beyond what the conformance suite asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.models import node_model, run

from tilewright import relay
from tilewright.relay.expr import Call
from tilewright.relay.frontend.onnx import from_onnx


def two(operator: str, left: Any, right: Any, opset: int = 21, **attributes: Any) -> Any:
    """The result of one operator for two tensors."""
    inputs = {"a": np.asarray(left), "b": np.asarray(right)}
    return run(node_model(operator, inputs, opset=opset, **attributes), inputs)[0]


SIGNED = (np.asarray([7, -7, 7, -7], "int32"), np.asarray([2, 2, -2, -2], "int32"))


def test_quotient_of_integers_is_cut_off() -> None:
    """Div of integers rounds towards zero."""
    np.testing.assert_array_equal(two("Div", *SIGNED), [3, -3, -3, 3])


def test_remainders_have_the_sign_of_one_operand() -> None:
    """Mod has the divisor's sign, with fmod the dividend's."""
    np.testing.assert_array_equal(two("Mod", *SIGNED), [1, 1, -1, -1])
    np.testing.assert_array_equal(two("Mod", *SIGNED, fmod=1), [1, -1, 1, -1])


@pytest.mark.parametrize(
    "kinds", [("int32", "float32"), ("int64", "int32"), ("float32", "int64"), ("float64", "float32")]
)
def test_powers_have_the_type_of_the_base(kinds: tuple[str, str]) -> None:
    """The exponent may be of any type; a whole power of an integer is exact."""
    base, exponent = np.arange(1, 10).astype(kinds[0]), np.asarray(5).astype(kinds[1])
    found = two("Pow", base, exponent)
    assert found.dtype == base.dtype
    np.testing.assert_allclose(found, np.arange(1, 10) ** 5, rtol=0 if kinds[0].startswith("int") else 1e-6)


def test_integers_to_a_fraction_are_cut_off() -> None:
    """The square root of an integer, as a power, is cut off."""
    np.testing.assert_array_equal(two("Pow", np.asarray([2, 4, 8], "int32"), np.float32(0.5)), [1, 2, 2])


@pytest.mark.parametrize(("exponent", "operator"), [(2.0, "multiply"), (0.5, "sqrt"), (-1.0, "divide")])
def test_simple_powers_are_no_powers(exponent: float, operator: str) -> None:
    """Squares, roots and reciprocals become cheaper operators."""
    inputs: dict[str, Any] = {"a": np.asarray([1.0, 4.0], "float32"), "b": np.float32(exponent)}
    model = node_model("Pow", inputs, constants={"b": inputs["b"]})
    body = from_onnx(model)[0]["main"].body
    assert isinstance(body, Call)
    assert body.op is relay.op.get(operator)
    np.testing.assert_allclose(run(model, inputs)[0], inputs["a"] ** exponent, rtol=1e-6)


def test_operand_at_an_axis_before_opset_7() -> None:
    """Before opset 7 the right operand stands at the axis that is named."""
    left, right = np.zeros((2, 3, 4), "float32"), np.arange(3).astype("float32")
    found = two("Add", left, right, opset=6, broadcast=1, axis=1)
    np.testing.assert_array_equal(found, np.broadcast_to(right[:, None], (2, 3, 4)))


def test_many_operands_are_broadcast() -> None:
    """Max, Min, Sum and Mean take any number of tensors of different shapes."""
    inputs = {
        "a": np.asarray([[1.0], [5.0]], "float32"),
        "b": np.asarray([2.0, 3.0], "float32"),
        "c": np.float32(4),
    }
    expected = {"Max": [[4, 4], [5, 5]], "Min": [[1, 1], [2, 3]], "Sum": [[7, 8], [11, 12]]}
    for operator, values in expected.items():
        np.testing.assert_array_equal(run(node_model(operator, inputs), inputs)[0], values)
    np.testing.assert_allclose(
        run(node_model("Mean", inputs), inputs)[0], np.asarray(expected["Sum"]) / 3, rtol=1e-6
    )
