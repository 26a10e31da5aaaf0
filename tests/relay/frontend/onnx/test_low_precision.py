"""Low-precision element types: what codes mean, and how numbers become codes, is what ml_dtypes has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import run

from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.low_precision import (
    LOW_PRECISION_TYPES,
    LowPrecisionInteger,
    decoding_table,
    encoded,
    from_carrier,
    to_carrier,
)
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError

FLOATS = [each for each in LOW_PRECISION_TYPES.values() if not isinstance(each, LowPrecisionInteger)]
ROUNDED = [each for each in FLOATS if each.name != "float8e8m0"]


def numpy_type(element_type: int) -> Any:
    """The type of ml_dtypes."""
    return onnx.helper.tensor_dtype_to_np_dtype(element_type)


@pytest.mark.parametrize("low_precision", FLOATS, ids=lambda each: each.name)
def test_every_code_means_what_it_should(low_precision: Any) -> None:
    """The table of decoding agrees with ml_dtypes on all codes."""
    codes = np.arange(1 << low_precision.bits, dtype="uint8")
    expected = codes.view(numpy_type(low_precision.element_type)).astype("float32")
    np.testing.assert_array_equal(decoding_table(low_precision), expected)


def awkward(low_precision: Any) -> Any:
    """Every number of a type, the points halfway between neighbours, points beside those, and what is beyond."""
    finite = np.sort(decoding_table(low_precision)[np.isfinite(decoding_table(low_precision))]).astype(
        "float64"
    )
    middles = (finite[1:] + finite[:-1]) / 2
    largest = finite[-1]
    beyond = [largest * 1.03, largest * 1.0625, largest * 1.07, largest * 4, 1e30, np.inf, np.nan]
    points = np.concatenate([finite, middles, middles * (1 + 1e-6), middles * (1 - 1e-6), beyond])
    return np.concatenate([points, -points]).astype("float32")


@pytest.mark.parametrize("low_precision", ROUNDED, ids=lambda each: each.name)
def test_numbers_round_to_the_nearest_code(low_precision: Any) -> None:
    """Encoding without saturation agrees with the conversion of ml_dtypes, ties and overflow included."""
    given = awkward(low_precision)
    found = Interpreter().run(encoded(const(given), low_precision, saturate=False))
    expected = given.astype(numpy_type(low_precision.element_type))
    np.testing.assert_array_equal(
        from_carrier(found, low_precision.element_type).astype("float32"), expected.astype("float32")
    )


@pytest.mark.parametrize("low_precision", ROUNDED, ids=lambda each: each.name)
def test_saturation_keeps_the_largest(low_precision: Any) -> None:
    """With saturation, infinity and all that is too large become the largest number."""
    given = np.asarray([1e30, np.inf, -1e30, -np.inf], "float32")
    found = decoding_table(low_precision)[Interpreter().run(encoded(const(given), low_precision))]
    largest = decoding_table(low_precision)[low_precision.largest]
    np.testing.assert_array_equal(found, [largest, largest, -largest, -largest])


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
def test_powers_of_two_round_as_asked(rounding: str) -> None:
    """float8e8m0 keeps exponents; what lies between goes up, down or to the nearest."""
    low_precision = LOW_PRECISION_TYPES[24]
    given = np.asarray([1.0, 1.25, 1.5, 1.75, 3e-20, 2.0**127 * 1.5, np.inf, np.nan], "float32")
    found = Interpreter().run(encoded(const(given), low_precision, True, rounding))
    expected = onnx.numpy_helper.to_float8e8m0(given, True, rounding)
    np.testing.assert_array_equal(found, expected.view("uint8"))


@pytest.mark.parametrize("element_type", sorted(LOW_PRECISION_TYPES))
def test_carriers_come_back(element_type: int) -> None:
    """To a carrier and back is nothing lost."""
    low_precision = LOW_PRECISION_TYPES[element_type]
    codes = np.arange(1 << low_precision.bits, dtype="uint8")
    if isinstance(low_precision, LowPrecisionInteger):
        low, high = low_precision.limits
        values = np.arange(low, high + 1).astype(numpy_type(element_type))
    else:
        values = codes.view(numpy_type(element_type))
    back = from_carrier(to_carrier(values, low_precision), element_type)
    np.testing.assert_array_equal(back.view("uint8"), values.view("uint8"))


def low_precision_model(operator: str, element_type: int) -> onnx.ModelProto:
    """A model that moves float8 by one operator, and casts it to float32."""
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["low_precision"], to=element_type),
        onnx.helper.make_node(operator, ["low_precision"], ["moved"]),
        onnx.helper.make_node("Cast", ["moved"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    graph = onnx.helper.make_graph(nodes, "moved", [info], [onnx.ValueInfoProto(name="y")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=11)


def test_moving_keeps_the_meaning() -> None:
    """A transposed tensor of float8 is still float8."""
    given = np.asarray([[0.3, -1.7, 100.0], [2.0, 3.3, -0.01]], "float32")
    model = low_precision_model("Transpose", onnx.TensorProto.FLOAT8E4M3FN)
    expected = given.astype(numpy_type(onnx.TensorProto.FLOAT8E4M3FN)).astype("float32").T
    np.testing.assert_array_equal(run(model, {"x": given})[0], expected)


def test_arithmetic_on_carriers_is_refused() -> None:
    """An operator that would take codes for numbers is an error that says so."""
    with pytest.raises(ModelError, match="float8e5m2 can only be moved, cast"):
        from_onnx(low_precision_model("Relu", onnx.TensorProto.FLOAT8E5M2))


def test_branches_keep_the_meaning() -> None:
    """What a branch gives is of the type that the branch declares."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT8E4M3FN
    branches = {}
    for name, value in (("then_branch", 0.3), ("else_branch", 5.1)):
        constant = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [value])
        nodes = [
            helper.make_node("Constant", [], [f"{name}_value"], value=constant),
            helper.make_node("Cast", [f"{name}_value"], [f"{name}_out"], to=kind),
        ]
        info = helper.make_tensor_value_info(f"{name}_out", kind, [1])
        branches[name] = helper.make_graph(nodes, name, [], [info])
    nodes = [
        helper.make_node("If", ["chosen"], ["low_precision"], **branches),
        helper.make_node("Cast", ["low_precision"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    info = helper.make_tensor_value_info("chosen", onnx.TensorProto.BOOL, [])
    graph = helper.make_graph(nodes, "branches", [info], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    for chosen, expected in ((True, 0.3125), (False, 5.0)):
        np.testing.assert_array_equal(run(model, {"chosen": np.asarray(chosen)})[0], np.float32([expected]))
