"""Pooling gives what ONNX Runtime gives, whether the sizes of the data are known or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import check_like_onnx_runtime, node_model, run

WINDOWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "1-D": (floats(1, 2, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    "2-D": (floats(1, 2, 7, 8), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}),
    "3-D": (floats(1, 2, 5, 5, 5), {"kernel_shape": [2, 3, 2]}),
    "same": (floats(1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
}


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("name", list(WINDOWS))
def test_windows(name: str, operator: str) -> None:
    """Strides and padding."""
    data, attributes = WINDOWS[name]
    check_like_onnx_runtime(operator, {"x": data - 5}, **attributes)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_a_last_window_that_is_not_whole(operator: str) -> None:
    """``ceil_mode``: what lies beyond the padding counts for nothing, counted padding or not."""
    attributes: dict[str, Any] = {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": [1, 1, 0, 0],
        "ceil_mode": 1,
    }
    if operator == "AveragePool":
        for count in (0, 1):
            check_like_onnx_runtime(
                operator, {"x": floats(1, 1, 6, 7)}, count_include_pad=count, **attributes
            )
    else:
        check_like_onnx_runtime(operator, {"x": floats(1, 1, 6, 7)}, **attributes)


@pytest.mark.parametrize("order", [0, 1])
def test_where_the_largest_are(order: int) -> None:
    """The indices of a max pooling, rows first and columns first."""
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}
    check_like_onnx_runtime(
        "MaxPool", {"x": floats(2, 2, 6, 7)}, 2, unknown=False, storage_order=order, **attributes
    )


def test_integers() -> None:
    """Padding never wins, not even against the least integers."""
    data = np.full((1, 1, 4, 4), -128, "int8")
    inputs = {"x": data}
    model = node_model("MaxPool", inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    np.testing.assert_array_equal(run(model, inputs)[0], data)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_norms_of_windows(power: int) -> None:
    """LpPool and GlobalLpPool for several norms."""
    data = floats(1, 2, 6, 7)
    check_like_onnx_runtime(
        "LpPool", {"x": data}, p=power, kernel_shape=[2, 3], strides=[2, 2], pads=[1, 1, 0, 1]
    )
    check_like_onnx_runtime("GlobalLpPool", {"x": data}, p=power)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 4), (2, 3, 3, 2, 4)])
def test_over_everything(operator: str, shape: tuple[int, ...]) -> None:
    """One, two and three axes."""
    check_like_onnx_runtime(operator, {"x": floats(*shape)})
