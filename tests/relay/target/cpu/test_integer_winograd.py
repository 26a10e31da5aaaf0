"""Winograd convolutions of 8-bit integers: which convolutions become one, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.target.cpu.integer_winograd import largest_sum
from tilewright.target.host import host_features
from tilewright.topi.nn.winograd_util import integer_winograd_transforms

AVX2 = "llvm -mcpu=haswell"


def convolution(shape: tuple[int, ...], weight: Any, padding: int = 1, strides: int = 1) -> Any:
    """A module that convolves uint8 data with a constant int8 weight, and ends in a ReLU."""
    data = relay.var("data", shape=shape, dtype="uint8")
    made = relay.nn.conv2d(
        data,
        relay.const(weight),
        padding=(padding, padding),
        strides=(strides, strides),
        channels=weight.shape[0],
        kernel_size=weight.shape[2:],
        out_dtype="int32",
    )
    return tvm.IRModule.from_expr(relay.Function([data], relay.nn.relu(made)))


def operators(module: Any, target: str) -> set[str]:
    """The names of the operators of an optimised module."""
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target(target):
        optimised, _ = relay.optimize(module, target)
    names: set[str] = set()

    def note(expr: Any) -> None:
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            names.add(expr.op.name)

    relay.analysis.post_order_visit(optimised["main"], note)
    return names


WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"


def weights(*shape: int) -> Any:
    """Random weights, of the whole range."""
    return np.random.default_rng(5).integers(-128, 128, shape).astype("int8")


def test_without_vnni() -> None:
    """Where pairs of int16 are multiplied in any case, fewer products are faster; with a stride there are none."""
    large = weights(64, 64, 3, 3)
    assert WINOGRAD in operators(convolution((1, 64, 56, 56), large), AVX2)
    assert WINOGRAD not in operators(convolution((1, 64, 56, 56), large, strides=2), AVX2)
    assert WINOGRAD not in operators(convolution((1, 64, 56, 56), weights(64, 64, 1, 1), padding=0), AVX2)


def test_the_limit_of_tiles_is_kept() -> None:
    """With a largest tile of zero, no convolution is one of Winograd's."""
    with tvm.transform.PassContext(opt_level=3, config={"relay.winograd.largest_tile": 0}):
        optimised, _ = relay.optimize(convolution((1, 64, 56, 56), weights(64, 64, 3, 3)), AVX2)
    assert WINOGRAD not in str(optimised)


def test_the_largest_sum() -> None:
    """Data are the largest where weights are positive, and the least where they are negative, or the other way."""
    kernel = np.array([[[[1, -2]]], [[[-100, 90]]]], "int8")
    assert largest_sum(kernel, "uint8") == 255 * 100
    assert largest_sum(kernel, "int8") == 128 * 100 + 127 * 90


@pytest.mark.parametrize("target", ["llvm", AVX2])
@pytest.mark.parametrize(("channels", "value"), [(64, 127), (192, -128)])
def test_extreme_weights_are_exact(target: str, channels: int, value: int) -> None:
    """Sums at the edge of what tiles of four can hold, and beyond it, where smaller tiles are taken."""
    if target == AVX2 and "avx2" not in host_features():
        pytest.skip("this machine has no AVX2")
    weight = np.full((32, channels, 3, 3), value, "int8")
    beyond = largest_sum(weight, "uint8") >= integer_winograd_transforms(4).limit
    assert beyond == (channels == 192)
    module = convolution((1, channels, 30, 33), weight)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, target)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    data = np.full((1, channels, 30, 33), 255, "uint8")
    executor.run(data=data)
    counts = np.pad(np.ones((30, 33), "int64"), 1)
    taps = np.lib.stride_tricks.sliding_window_view(counts, (3, 3)).sum(axis=(2, 3))
    expected = np.maximum(taps * 255 * value * channels, 0)
    np.testing.assert_array_equal(executor.get_output(0).numpy()[0, 5], expected)


def test_the_reference_agrees() -> None:
    """The operator's reference, which takes the weight back to its taps, gives what the plain convolution gives."""
    module = convolution((1, 32, 24, 20), weights(64, 32, 3, 3))
    with tvm.transform.PassContext(opt_level=3):
        optimised, _ = relay.optimize(module, AVX2)
    assert WINOGRAD in str(optimised)
    data = np.random.default_rng(6).integers(0, 256, (1, 32, 24, 20)).astype("uint8")
    plain, transformed = (
        relay.create_executor("debug", each, tvm.cpu(0), "llvm").evaluate()(data).numpy()
        for each in (module, optimised)
    )
    np.testing.assert_array_equal(transformed, plain)
