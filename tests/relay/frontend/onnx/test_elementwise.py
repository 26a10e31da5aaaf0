"""Mathematical functions and activations, beyond what the conformance suite asks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx


def one(operator: str, value: Any, opset: int = 21, **attributes: Any) -> Any:
    """The result of one operator for one tensor."""
    return run(node_model(operator, {"x": value}, opset=opset, **attributes), {"x": value})[0]


LARGE = np.asarray([-200.0, -90.0, -1.0, 0.0, 1.0, 90.0, 200.0], "float32")


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Softplus", np.logaddexp(LARGE.astype("float64"), 0)),
        ("Elu", np.where(LARGE < 0, np.expm1(LARGE.astype("float64")), LARGE)),
        ("Sigmoid", 1 / (1 + np.exp(-LARGE.astype("float64")))),
        ("Softsign", LARGE / (1 + np.abs(LARGE))),
    ],
)
def test_large_arguments_stay_finite(operator: str, expected: Any) -> None:
    """No step overflows where the result does not."""
    np.testing.assert_allclose(one(operator, LARGE), expected, rtol=1e-5, atol=1e-7)


def test_halves_round_to_even() -> None:
    """Round goes to the even neighbour from halfway, in both signs."""
    given = np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609.0, -3.2], "float32")
    np.testing.assert_array_equal(one("Round", given), np.rint(given))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gelu_in_both_forms(dtype: str) -> None:
    """The exact form and the one by tanh; float16 is rounded once."""
    given = np.linspace(-4, 4, 33).astype(dtype)
    wide = given.astype("float64")
    exact = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
    curve = wide * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    rtol = 1e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(
        one("Gelu", given), exact, rtol=rtol, atol=1e-3 if dtype == "float16" else 1e-6
    )
    found = one("Gelu", given, approximate="tanh")
    np.testing.assert_allclose(found, curve, rtol=rtol, atol=1e-3 if dtype == "float16" else 1e-6)


def test_shrink_of_integers_compares_with_a_fraction() -> None:
    """The threshold of Shrink need not be an integer where the data are."""
    given = np.asarray([-3, -1, 0, 1, 3], "int32")
    np.testing.assert_array_equal(one("Shrink", given, lambd=1.5, bias=1.0), [-2, 0, 0, 0, 2])


def test_clip_limits_as_attributes_and_as_inputs() -> None:
    """Up to opset 10 limits are attributes; later they are inputs, also such as only the program knows."""
    given = np.asarray([-2.0, 0.5, 7.0], "float32")
    np.testing.assert_array_equal(one("Clip", given, opset=6, min=-1.0, max=2.0), [-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(one("Clip", given, opset=6, max=2.0), [-2.0, 0.5, 2.0])
    inputs = {"x": given, "low": np.float32(-1), "high": np.float32(2)}
    for constants in ({}, {"low": np.float32(-1), "high": np.float32(2)}, {"high": np.float32(2)}):
        model = node_model("Clip", inputs, constants=constants)
        assert_close(run(model, inputs), [np.asarray([-1.0, 0.5, 2.0], "float32")])


def test_slope_of_each_channel_before_opset_7() -> None:
    """A slope of one dimension is one for each channel up to opset 6, and is broadcast from the right later."""
    data = -np.ones((1, 2, 2), "float32")
    slope = np.asarray([1.0, 2.0], "float32")
    inputs = {"x": data, "slope": slope}
    old = run(node_model("PRelu", inputs, opset=6), inputs)[0]
    new = run(node_model("PRelu", inputs, opset=16), inputs)[0]
    np.testing.assert_array_equal(old, [[[-1, -1], [-2, -2]]])
    np.testing.assert_array_equal(new, [[[-1, -2], [-1, -2]]])


def test_functions_of_unknown_shapes() -> None:
    """No activation needs a size."""
    given = np.linspace(-2, 2, 6).astype("float32").reshape(2, 3)
    for operator in ("HardSwish", "Mish", "Selu", "Celu", "ThresholdedRelu", "Round"):
        model = node_model(operator, {"x": given}, opset=22, unknown=True)
        module, _ = from_onnx(model)
        assert "?" in str(module["main"].params[0].type_annotation)
        assert_close(run(model, {"x": given}), [one(operator, given, opset=22)])


def test_activations_of_integers() -> None:
    """Computed in floating point, and cut off."""
    given = np.asarray([-3, 0, 2, 50], "int64")
    found = one("Softplus", given)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, [0, 0, 2, 50])
