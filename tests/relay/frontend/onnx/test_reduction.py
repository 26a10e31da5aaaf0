"""Reductions, in the forms of all opsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx

DATA = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")


def log_sum_exp(data: Any, **how: Any) -> Any:
    """log(sum(exp(data)))."""
    return np.log(np.exp(data).sum(**how))


FUNCTIONS: dict[str, Any] = {
    "ReduceL1": lambda data, **how: np.abs(data).sum(**how),
    "ReduceL2": lambda data, **how: np.sqrt(np.square(data).sum(**how)),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda data, **how: np.square(data).sum(**how),
}


@pytest.mark.parametrize("operator", FUNCTIONS)
@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_axes_as_attribute_and_as_input(operator: str, opset: int) -> None:
    """Axes move from the attributes to the inputs at opset 18, for ReduceSum at 13."""
    as_input = opset >= (13 if operator == "ReduceSum" else 18)
    inputs: dict[str, Any] = {"x": DATA}
    attributes: dict[str, Any] = {"keepdims": 0}
    if as_input:
        inputs["axes"] = np.asarray([0, -1], "int64")
    else:
        attributes["axes"] = [0, 2]
    constants = {"axes": inputs["axes"]} if as_input else {}
    model = node_model(operator, inputs, opset=opset, constants=constants, **attributes)
    assert_close(run(model, inputs), [FUNCTIONS[operator](DATA, axis=(0, 2)).astype("float32")])


def test_no_axes_mean_all_or_none() -> None:
    """Without axes everything is reduced, or nothing with noop_with_empty_axes."""
    inputs = {"x": DATA}
    assert_close(run(node_model("ReduceSum", inputs, opset=13), inputs), [DATA.sum(keepdims=True)])
    found = run(node_model("ReduceSum", inputs, opset=13, noop_with_empty_axes=1), inputs)
    assert_close(found, [DATA])
    squared = run(node_model("ReduceSumSquare", inputs, opset=18, noop_with_empty_axes=1), inputs)
    assert_close(squared, [DATA * DATA])


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("ReduceSum", 0.0),
        ("ReduceProd", 1.0),
        ("ReduceMax", -np.inf),
        ("ReduceMin", np.inf),
        ("ReduceLogSum", -np.inf),
        ("ReduceLogSumExp", -np.inf),
        ("ReduceMean", np.nan),
    ],
)
def test_nothing_combined(operator: str, expected: float) -> None:
    """Of no elements, the neutral element of the operation."""
    inputs = {"x": np.zeros((2, 0, 3), "float32"), "axes": np.asarray([1], "int64")}
    model = node_model(operator, inputs, opset=18, constants={"axes": inputs["axes"]})
    np.testing.assert_array_equal(run(model, inputs)[0], np.full((2, 1, 3), expected, "float32"))


def test_integers_and_truth() -> None:
    """Integers are reduced in their type; of bool, the greatest is whether any is true."""
    whole = np.asarray([[3, 4], [6, 8]], "int32")
    model = node_model("ReduceL2", {"x": whole}, opset=13, axes=[1], keepdims=0)
    np.testing.assert_array_equal(run(model, {"x": whole})[0], [5, 10])
    truth = np.asarray([[True, False], [False, False]])
    inputs = {"x": truth, "axes": np.asarray([1], "int64")}
    for operator, expected in (("ReduceMax", [True, False]), ("ReduceMin", [False, False])):
        model = node_model(operator, inputs, opset=20, constants={"axes": inputs["axes"]}, keepdims=0)
        np.testing.assert_array_equal(run(model, inputs)[0], expected)


def test_first_or_last_of_equals() -> None:
    """ArgMax takes the first of equals, or the last; positions are int64."""
    given = np.asarray([[2, 5, 5], [7, 7, 1]], "float32")
    for last, expected in ((0, [[1], [0]]), (1, [[2], [1]])):
        model = node_model("ArgMax", {"x": given}, opset=13, axis=1, select_last_index=last)
        found = run(model, {"x": given})[0]
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_unknown_sizes_stay_unknown() -> None:
    """A reduction keeps dimensions that are not known, and drops those that it reduces."""
    model = node_model("ReduceMean", {"x": DATA}, opset=13, unknown=True, axes=[1], keepdims=1)
    kind = from_onnx(model)[0]["main"].body.checked_type
    assert str(kind) == "Tensor[(?, 1, ?), float32]"
    assert_close(run(model, {"x": DATA}), [DATA.mean(axis=1, keepdims=True)])


@pytest.mark.parametrize("operator", FUNCTIONS)
@pytest.mark.parametrize("axes", [[1], [-1, 0], [2, 0, 1]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_that_are_known_only_when_the_model_runs(operator: str, axes: list[int], keepdims: int) -> None:
    """Their number is known, and so is the rank of the result."""
    inputs: dict[str, Any] = {"x": DATA, "axes": np.asarray(axes, "int64")}
    model = node_model(operator, inputs, opset=18, keepdims=keepdims)
    kind = from_onnx(model)[0]["main"].checked_type.ret_type
    assert len(kind.shape) == (3 if keepdims else 3 - len(axes))
    (found,) = run(model, inputs)
    expected = FUNCTIONS[operator](DATA, axis=tuple(axes), keepdims=bool(keepdims))
    assert_close([found], [np.asarray(expected)])


def test_axes_and_shapes_that_are_known_only_when_the_model_runs() -> None:
    """A tensor of open dimensions, integers of it, and one without elements."""
    inputs: dict[str, Any] = {
        "x": np.arange(24, dtype="int64").reshape(2, 3, 4),
        "axes": np.asarray([1], "int64"),
    }
    (found,) = run(node_model("ReduceSum", inputs, opset=13, unknown=True), inputs)
    np.testing.assert_array_equal(found, inputs["x"].sum(1, keepdims=True))
    inputs["x"] = np.zeros((2, 0, 4), "float32")
    (found,) = run(node_model("ReduceSum", inputs, opset=13), inputs)
    np.testing.assert_array_equal(found, np.zeros((2, 1, 4), "float32"))
