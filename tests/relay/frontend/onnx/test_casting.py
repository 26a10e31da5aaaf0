"""Casts between ordinary types, low-precision types and bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError

TYPES = onnx.TensorProto


def one(operator: str, value: Any, opset: int = 24, **attributes: Any) -> Any:
    """The result of one operator for one tensor."""
    return run(node_model(operator, {"x": value}, opset=opset, **attributes), {"x": value})[0]


def test_truth_is_what_is_not_zero() -> None:
    """A fraction is true, minus zero is not."""
    given = np.asarray([0.0, -0.0, 0.25, -3.0, np.nan], "float32")
    np.testing.assert_array_equal(one("Cast", given, to=TYPES.BOOL), [False, False, True, True, True])


def test_floats_are_cut_off() -> None:
    """To integers, towards zero."""
    given = np.asarray([-1.9, -0.2, 1.9], "float64")
    np.testing.assert_array_equal(one("Cast", given, to=TYPES.INT64), [-1, 0, 1])


@pytest.mark.parametrize(("kind", "expected"), [(TYPES.UINT4, [9, 15, 0]), (TYPES.INT4, [-7, -1, 0])])
def test_few_bits_keep_the_low_ones(kind: int, expected: list[int]) -> None:
    """Integers that do not fit lose their high bits."""
    model = node_model("Cast", {"x": np.asarray([9, 31, 16], "int32")}, opset=24, to=kind)
    back = onnx.helper.make_node("Cast", ["out0"], ["back"], to=TYPES.INT32)
    model.graph.node.append(back)
    model.graph.output[0].name = "back"
    np.testing.assert_array_equal(run(model, {"x": np.asarray([9, 31, 16], "int32")})[0], expected)


def test_the_type_of_another_tensor() -> None:
    """CastLike takes the type, not the value."""
    inputs = {"x": np.asarray([1.5, 2.5], "float32"), "like": np.zeros(3, "int16")}
    found = run(node_model("CastLike", inputs), inputs)[0]
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, [1, 2])


def test_bits_are_taken_as_they_are() -> None:
    """BitCast changes the type and no bit, from and to low-precision types too."""
    given = np.asarray([0x38, 0x7F, 0x80], "uint8")
    found = one("BitCast", given, opset=26, to=TYPES.FLOAT8E4M3FN)
    np.testing.assert_array_equal(found.view("uint8"), given)
    np.testing.assert_array_equal(one("BitCast", given, opset=26, to=TYPES.INT8), given.view("int8"))
    with pytest.raises(ModelError, match="8 bits are not elements of 16"):
        from_onnx(node_model("BitCast", {"x": given}, opset=26, to=TYPES.INT16))


def test_strings_are_refused_by_name() -> None:
    """A cast to strings says what is not supported."""
    with pytest.raises(ModelError, match="STRING"):
        from_onnx(node_model("Cast", {"x": np.zeros(2, "float32")}, to=TYPES.STRING))
