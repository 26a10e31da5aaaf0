"""What is known of a shape survives the arithmetic on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.frontend.onnx import from_onnx

INT64 = onnx.TensorProto.INT64


def reshaped_by(*nodes: Any, **constants: Any) -> TensorType:
    """The type of ``x`` of shape (batch, 4, 6) reshaped by ``shape``, which nodes compute from its shape ``given``."""
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 4, 6])
    every = [
        helper.make_node("Shape", ["x"], ["given"]),
        *nodes,
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    stored = [
        onnx.numpy_helper.from_array(np.asarray(value, "int64"), name) for name, value in constants.items()
    ]
    graph = helper.make_graph(every, "shapes", [info], [onnx.ValueInfoProto(name="y")], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    kind = from_onnx(model)[0]["main"].body.checked_type
    assert isinstance(kind, TensorType)
    return kind


def text(kind: TensorType) -> list[str]:
    """The dimensions of a type."""
    return [str(getattr(extent, "value", "?")) for extent in kind.shape]


@pytest.mark.parametrize(
    ("operator", "other", "expected"),
    [
        ("Mul", [1, 2, 1], ["?", "8", "6"]),
        ("Add", [0, 2, 0], ["?", "6", "6"]),
        ("Sub", [0, 0, 2], ["?", "4", "4"]),
        ("Div", [1, 2, 3], ["?", "2", "2"]),
        ("Max", [0, 5, 0], ["?", "5", "6"]),
        ("Min", [9999, 2, 3], ["?", "2", "3"]),
    ],
)
def test_arithmetic_of_known_elements(operator: str, other: list[int], expected: list[str]) -> None:
    """Each element that follows from known ones is known, though the first is not."""
    kind = reshaped_by(helper.make_node(operator, ["given", "other"], ["shape"]), other=other)
    assert text(kind) == expected


def test_casts_and_choices_keep_what_is_known() -> None:
    """Through a cast to int32 and back, a comparison and a choice."""
    kind = reshaped_by(
        helper.make_node("Cast", ["given"], ["small"], to=onnx.TensorProto.INT32),
        helper.make_node("Cast", ["small"], ["back"], to=INT64),
        helper.make_node("Equal", ["mask", "zero"], ["chosen"]),
        helper.make_node("Where", ["chosen", "back", "twelve"], ["shape"]),
        mask=[0, 1, 0],
        zero=0,
        twelve=[1, 4, 1],
    )
    assert text(kind) == ["?", "4", "6"]
