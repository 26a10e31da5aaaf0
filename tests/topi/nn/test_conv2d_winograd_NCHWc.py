"""Winograd convolution with blocked channels, scheduled for this machine."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te, topi
from tilewright.contrib import graph_executor
from tilewright.topi.nn.winograd_util import integer_winograd_transforms, winograd_matrices

ERROR = {2: 2e-6, 4: 4e-5, 6: 8e-5}
"""The largest error of a tile's size, relative to the largest result: what docs/passes.md states."""


def convolved(data: np.ndarray, weight: np.ndarray, padding: tuple[int, int, int, int]) -> np.ndarray:
    """The convolution in float64, by its definition."""
    top, left, down, right = padding
    padded = np.pad(data.astype("float64"), ((0, 0), (0, 0), (top, down), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwyx,ocyx->nohw", windows, weight.astype("float64"), optimize=True)


def blocked(array: np.ndarray, block: int) -> np.ndarray:
    """NCHW as NCHWc."""
    batch, channels, height, width = array.shape
    return np.ascontiguousarray(
        array.reshape(batch, channels // block, block, height, width).transpose(0, 1, 3, 4, 2)
    )


def transformed(weight: np.ndarray, tile: int, block: int) -> np.ndarray:
    """OIHW as (n, n, O/o, I, o)."""
    g = winograd_matrices(tile, 3)[2]
    made = np.einsum("ah,bw,oihw->aboi", g, g, weight, optimize=True)
    size, outputs, inputs = made.shape[0], made.shape[2], made.shape[3]
    packed = made.reshape(size, size, outputs // block, block, inputs).swapaxes(3, 4)
    return np.ascontiguousarray(packed.astype("float32"))


@pytest.mark.parametrize(
    ("batch", "inputs", "outputs", "size", "padding"),
    [
        (1, 16, 32, (12, 12), (1, 1, 1, 1)),
        (1, 64, 64, (9, 14), (1, 1, 1, 1)),
        (2, 8, 24, (7, 5), (0, 0, 0, 0)),
        (1, 16, 16, (10, 11), (2, 0, 1, 2)),
        (1, 32, 128, (2, 3), (1, 1, 1, 1)),
    ],
)
@pytest.mark.parametrize("tile", [2, 4, 6])
def test_values(
    tile: int,
    batch: int,
    inputs: int,
    outputs: int,
    size: tuple[int, int],
    padding: tuple[int, int, int, int],
) -> None:
    """The convolution with what follows it, within the stated error, whatever tiles are cut off at the edges."""
    generator = np.random.default_rng(7)
    data = generator.standard_normal((batch, inputs, *size)).astype("float32")
    weight = generator.standard_normal((outputs, inputs, 3, 3)).astype("float32")
    bias = generator.standard_normal((outputs // 8, 1, 1, 8)).astype("float32")
    expected = convolved(data, weight, padding) + bias.reshape(1, -1, 1, 1)
    arrays = [blocked(data, 8), transformed(weight, tile, 8), bias]
    places = [te.placeholder(array.shape, name=name) for array, name in zip(arrays, "dwb", strict=True)]
    with tvm.target.Target("llvm"):
        made = topi.x86.conv2d_winograd_NCHWc(places[0], places[1], 1, padding, 1)
        result = topi.nn.relu(topi.add(made, places[2]))
        schedule = topi.x86.schedule_conv2d_winograd_NCHWc([result])
        function = tvm.build(schedule, [*places, result])
    out = tvm.nd.array(np.empty([int(extent) for extent in result.shape], "float32"))
    function(*[tvm.nd.array(array) for array in arrays], out)
    error = np.abs(out.numpy() - blocked(np.maximum(expected, 0), 8)).max()
    assert error <= ERROR[tile] * np.abs(expected).max()


@pytest.mark.parametrize("outputs", ["two results", "another shape"])
def test_what_follows_may_have_any_shape(outputs: str) -> None:
    """Results that do not have the convolution's shape are computed after it, from memory."""
    generator = np.random.default_rng(8)
    data = generator.standard_normal((1, 16, 8, 8)).astype("float32")
    weight = generator.standard_normal((16, 16, 3, 3)).astype("float32")
    arrays = [blocked(data, 16), transformed(weight, 4, 16)]
    places = [te.placeholder(array.shape, name=name) for array, name in zip(arrays, "dw", strict=True)]
    expected = convolved(data, weight, (1, 1, 1, 1))
    with tvm.target.Target("llvm"):
        made = topi.x86.conv2d_winograd_NCHWc(places[0], places[1], 1, 1, 1)
        plain = te.compute((1, 16, 8, 8), lambda n, c, h, w: made[n, c // 16, h, w, c % 16], name="plain")
        results = (
            [topi.nn.relu(plain)] if outputs == "another shape" else [topi.nn.relu(made), topi.tanh(made)]
        )
        function = tvm.build(topi.x86.schedule_conv2d_winograd_NCHWc(results), [*places, *results])
    outs = [tvm.nd.array(np.empty([int(extent) for extent in one.shape], "float32")) for one in results]
    function(*[tvm.nd.array(array) for array in arrays], *outs)
    if outputs == "another shape":
        np.testing.assert_allclose(outs[0].numpy(), np.maximum(expected, 0), rtol=1e-3, atol=1e-3)
    else:
        np.testing.assert_allclose(
            outs[0].numpy(), blocked(np.maximum(expected, 0), 16), rtol=1e-3, atol=1e-3
        )
        np.testing.assert_allclose(outs[1].numpy(), np.tanh(blocked(expected, 16)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("kwargs", "message"), [({"strides": 2}, "strides of 1"), ({"dilation": 2}, "dilation of 1")]
)
def test_other_convolutions_are_refused(kwargs: dict[str, int], message: str) -> None:
    """Winograd does not apply to strides and dilation."""
    given = {"strides": 1, "padding": 1, "dilation": 1, **kwargs}
    data, weight = te.placeholder((1, 1, 8, 8, 8)), te.placeholder((6, 6, 1, 8, 8))
    with pytest.raises(tvm.TVMError, match=message):
        topi.x86.conv2d_winograd_NCHWc(data, weight, **given)


def network() -> tuple[tvm.IRModule, dict[str, np.ndarray], np.ndarray]:
    """A convolution of a size for which filtering pays, with a bias and an activation."""
    generator = np.random.default_rng(9)
    data, weight = relay.var("data", shape=(1, 64, 28, 28)), relay.var("weight", shape=(64, 64, 3, 3))
    bias = relay.var("bias", shape=(64,))
    made = relay.nn.conv2d(data, weight, padding=(1, 1), channels=64, kernel_size=(3, 3))
    module = tvm.IRModule.from_expr(relay.nn.relu(relay.nn.bias_add(made, bias)))
    params = {
        "weight": (generator.standard_normal((64, 64, 3, 3)) / 24).astype("float32"),
        "bias": generator.standard_normal(64).astype("float32"),
    }
    return module, params, generator.standard_normal((1, 64, 28, 28)).astype("float32")


@pytest.mark.parametrize(("largest", "filtered"), [(0, False), (4, True), (6, True)])
def test_chosen_by_the_compiler(largest: int, filtered: bool) -> None:
    """A large convolution is filtered, unless the pass context forbids it; the numbers are the same."""
    module, params, data = network()
    config = {"relay.winograd.largest_tile": largest}
    with tvm.transform.PassContext(opt_level=3, config=config):
        library = relay.build(module, "llvm", params=params)
    kernels = [node["name"] for node in json.loads(library.get_graph_json())["nodes"]]
    assert any("winograd" in name for name in kernels) == filtered
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    executor.run(data=data)
    expected = np.maximum(
        convolved(data, params["weight"], (1, 1, 1, 1)) + params["bias"].reshape(1, -1, 1, 1), 0
    )
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("inputs", "outputs", "size", "padding"),
    [(32, 32, (12, 12), (1, 1, 1, 1)), (16, 64, (9, 14), (1, 1, 1, 1)), (96, 32, (7, 5), (2, 0, 1, 2))],
)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_integers_are_exact(
    kind: str,
    tile: int,
    target: str,
    inputs: int,
    outputs: int,
    size: tuple[int, int],
    padding: tuple[int, ...],
) -> None:
    """8-bit data of the whole range give the integers of the definition, whatever sums wrap around on the way."""
    random = np.random.default_rng(inputs)
    limits = np.iinfo(kind)
    data = random.choice([limits.min, limits.max, 1, 77], (1, inputs, *size)).astype(kind)
    weight = random.choice([-128, 127, 3, -40], (outputs, inputs, 3, 3)).astype("int8")
    g = integer_winograd_transforms(tile).g
    moved = np.einsum("ah,bw,oihw->aboi", g, g, weight.astype("int64")).astype("int16")
    packed = moved.reshape(*g.shape[:1] * 2, outputs // 16, 16, inputs // 2, 2).swapaxes(3, 4)
    arrays = [blocked(data, 16), np.ascontiguousarray(packed)]
    places = [te.placeholder(array.shape, str(array.dtype)) for array in arrays]
    with tvm.target.Target(target):
        made = topi.x86.conv2d_winograd_NCHWc(places[0], places[1], 1, padding, 1, "int32")
        schedule = topi.x86.schedule_conv2d_winograd_NCHWc([made])
        function = tvm.build(schedule, [*places, made])
    out = tvm.nd.array(np.empty([int(extent) for extent in made.shape], "int32"))
    function(*[tvm.nd.array(array) for array in arrays], out)
    expected = convolved(data, weight, padding)  # type: ignore[arg-type]
    np.testing.assert_array_equal(out.numpy(), blocked(expected, 16))


def test_integers_need_packed_lanes() -> None:
    """A weight of integers that is not in lanes of int16 is refused, with what was given."""
    data, weight = te.placeholder((1, 1, 8, 8, 16), "uint8"), te.placeholder((6, 6, 1, 16, 16), "int8")
    with pytest.raises(tvm.TVMError, match="lanes of two int16"):
        topi.x86.conv2d_winograd_NCHWc(data, weight, 1, 1, 1, "int32")
