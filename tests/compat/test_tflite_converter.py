"""What a converter of one's own can ask TFLite's ``OperatorConverter`` about an operator and its tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.tflite.models import Graph, Op, T, held, model, run

from tilewright import relay
from tilewright.relay.frontend.tflite import OperatorConverter
from tilewright.support.errors import ModelError


def converted(convert: Callable[[OperatorConverter, Any], Any], content: bytes, *data: np.ndarray) -> Any:
    """What a model gives whose ADD is converted by a function of the converter and the operator."""

    class Mine(OperatorConverter):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.convert_map["ADD"] = lambda op: convert(self, op)

    return run(content, *data, op_converter=Mine)


def added(left: T, right: T, result: T) -> bytes:
    """A model that adds two tensors; those without a value are its inputs."""
    inputs = [one.name for one in (left, right) if one.value is None]
    op = Op("ADD", [left.name, right.name], [result.name], {"activation": "NONE"})
    return model(Graph([left, right, result], [op], inputs, [result.name]))


def test_tensors_of_an_operator() -> None:
    """What it reads and writes, which of them are computed, shapes, and the values that the model holds."""
    bias = np.float32([[1, 2, 3]])

    def convert(asked: OperatorConverter, op: Any) -> Any:
        data, known = asked.get_input_tensors(op)
        (out,) = asked.get_output_tensors(op)
        assert out.tensor.Name() == b"y" and asked.get_tensor_shape(out) == (2, 3)
        assert asked.get_tensor_shape(data) == (2, 3) and asked.get_tensor_shape(known) == (1, 3)
        assert asked.has_expr(data.tensor_idx)
        assert not asked.has_expr(known.tensor_idx) and not asked.has_expr(out.tensor_idx)
        np.testing.assert_array_equal(asked.get_tensor_value(known), bias)
        assert asked.get_tensor_value(data) is None
        assert not asked.is_quantized(op)
        left, right = asked.get_tensor_expr(data), asked.get_tensor_expr(known)
        assert left is asked.get_expr(data.tensor_idx)
        return relay.subtract(left, right)

    x = np.float32([[1, 1, 1], [2, 2, 2]])
    (found,) = converted(convert, added(T("x", (2, 3)), held("b", bias), T("y", (2, 3))), x)
    np.testing.assert_array_equal(found, x - bias)


def test_integers_that_stand_for_numbers() -> None:
    """They become numbers and numbers become them, by the scale and zero point of the tensor that is named."""

    def convert(asked: OperatorConverter, op: Any) -> Any:
        assert asked.is_quantized(op)
        tensors = asked.get_input_tensors(op)
        (out,) = asked.get_output_tensors(op)
        numbers = [asked.dequantize(asked.get_tensor_expr(one), one) for one in tensors]
        return asked.quantize(relay.multiply(*numbers), out)

    left, right = np.int8([10, -20, 30]), np.int8([4, 5, -128])
    content = added(
        T("a", (3,), "int8", scale=0.5, zero=2),
        T("b", (3,), "int8", scale=0.25, zero=-1),
        T("y", (3,), "int8", scale=0.5, zero=3),
    )
    (found,) = converted(convert, content, left, right)
    product = (left.astype("float32") - 2) * 0.5 * (right.astype("float32") + 1) * 0.25
    expected = np.clip(np.round(product / 0.5) + 3, -128, 127)
    assert found.dtype == "int8"
    np.testing.assert_array_equal(found, expected)


def test_a_weight_that_a_converter_changed() -> None:
    """The expression that is given becomes numbers, not the tensor as the model holds it."""
    weight = np.int8([[1, 2], [3, 4]])

    def convert(asked: OperatorConverter, op: Any) -> Any:
        data, known = asked.get_input_tensors(op)
        turned = relay.transpose(asked.get_tensor_expr(known))
        return relay.add(asked.get_tensor_expr(data), asked.dequantize(turned, known))

    content = added(T("x", (2, 2)), held("w", weight, scale=0.5, zero=1), T("y", (2, 2)))
    (found,) = converted(convert, content, np.zeros((2, 2), "float32"))
    np.testing.assert_array_equal(found, (weight.T.astype("float32") - 1) * 0.5)


def test_a_tensor_without_a_scale() -> None:
    """Cannot be quantised, and is named."""

    def convert(asked: OperatorConverter, op: Any) -> Any:
        (out,) = asked.get_output_tensors(op)
        return asked.quantize(asked.get_expr(0), out)

    with pytest.raises(ModelError, match="the tensor 'y' has no scale"):
        converted(convert, added(T("a", (2,)), T("b", (2,)), T("y", (2,))))
