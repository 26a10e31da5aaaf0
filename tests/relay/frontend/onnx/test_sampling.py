"""Images read at places, places of affine maps, and windows put together."""

from __future__ import annotations

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    """Places inside and outside an image."""
    inputs = {"x": floats(2, 3, 5, 6), "grid": floats(2, 4, 3, 2, seed=1)}
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    check_like_onnx_runtime("GridSample", inputs, opset=20, rtol=1e-3, **attributes)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_a_volume(mode: str) -> None:
    """Three axes."""
    inputs = {"x": floats(1, 2, 3, 4, 5), "grid": floats(1, 2, 3, 4, 3, seed=1)}
    check_like_onnx_runtime("GridSample", inputs, opset=20, mode=mode)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_affine_grid(aligned: int, size: tuple[int, ...]) -> None:
    """Images and volumes, as torch has it."""
    rank = len(size) - 2
    inputs = {"theta": floats(2, rank, rank + 1), "size": np.array(size, "int64")}
    model = node_model(
        "AffineGrid", inputs, opset=20, constants={"size": inputs["size"]}, align_corners=aligned
    )
    expected = torch.nn.functional.affine_grid(
        torch.tensor(inputs["theta"]), size, align_corners=bool(aligned)
    )
    assert_close(run(model, inputs), [expected.numpy()])


def test_col2im() -> None:
    """Windows with strides, dilation and padding that do not fill the image, as torch has it."""
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 1, 0]}
    image, block = (6, 7), (3, 2)
    columns = floats(2, 4 * 6, 3 * 5)
    inputs = {"c": columns, "image": np.array(image, "int64"), "block": np.array(block, "int64")}
    model = node_model(
        "Col2Im", inputs, opset=18, constants={k: inputs[k] for k in ("image", "block")}, **attributes
    )
    expected = torch.nn.functional.fold(
        torch.tensor(columns), image, block, dilation=(1, 2), padding=(1, 0), stride=(2, 1)
    )
    assert_close(run(model, {"c": columns}), [expected.numpy()])
