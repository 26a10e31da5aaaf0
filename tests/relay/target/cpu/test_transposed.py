"""Transposed convolutions on processors: other operators in their place, and the same numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.op.nn.convolution_rules import convolve_transposed

GENERATOR = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    """Random ones."""
    return GENERATOR.standard_normal(shape).astype("float32")


def layer(
    shape: tuple[int, ...], kernel: tuple[int, ...], dtype: str = "float32", **attributes: Any
) -> tuple[relay.Function, np.ndarray]:
    """A transposed convolution of as many axes as there are, with a constant weight, and that weight."""
    make = relay.nn.conv1d_transpose if len(shape) == 3 else relay.nn.conv2d_transpose
    weight = numbers(shape[1], *kernel).astype(dtype)
    x = relay.var("x", shape=shape, dtype=dtype)
    channels = kernel[0] * attributes.get("groups", 1)
    made = make(x, relay.const(weight), channels=channels, kernel_size=kernel[1:], **attributes)
    return relay.Function([x], made), weight


def compiled(function: relay.Function) -> tuple[list[str], Any]:
    """The names of the kernels, and what runs them."""
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(function), "llvm")
    nodes = json.loads(library.get_graph_json())["nodes"]
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))

    def run(data: np.ndarray) -> np.ndarray:
        module.set_input("x", data)
        module.run()
        result: np.ndarray = module.get_output(0).numpy()
        return result

    return [node["name"] for node in nodes if node["op"] != "null"], run


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], str]] = {
    "phases": ((1, 16, 4, 5), (32, 4, 4), {"strides": (2, 2), "padding": (1, 1)}, "nn_conv2d_transpose"),
    "output padding": (
        (2, 16, 4, 3),
        (16, 3, 3),
        {"strides": (2, 2), "padding": (1, 1), "output_padding": (1, 1)},
        "nn_conv2d_transpose",
    ),
    "a kernel smaller than the stride": (
        (1, 16, 3, 3),
        (16, 2, 1),
        {"strides": (3, 2)},
        "nn_conv2d_transpose",
    ),
    "one axis": ((1, 16, 7), (32, 5), {"strides": (2,), "padding": (2,)}, "nn_conv2d_transpose"),
    "an input of one element": ((2, 8, 1, 1), (16, 4, 3), {"strides": (1, 1)}, "dense"),
    "one element, cut off": ((1, 8, 1, 1), (16, 4, 3), {"strides": (2, 1), "padding": (1, 0, 0, 1)}, "dense"),
    "stride one": ((1, 16, 5, 4), (32, 3, 2), {"padding": (1, 0, 2, 1)}, "nn_contrib_conv2d_NCHWc"),
    "stride one, more cut off than the kernel reaches": (
        (1, 16, 5, 5),
        (16, 2, 2),
        {"padding": (2, 2)},
        "nn_conv2d_transpose",
    ),
    "few channels": (
        (1, 8, 4, 5),
        (3, 4, 4),
        {"strides": (2, 2), "padding": (1, 1)},
        "nn_contrib_conv2d_NCHWc",
    ),
    "few channels, cut and padded": (
        (2, 8, 4, 3),
        (3, 5, 3),
        {"strides": (3, 2), "padding": (0, 1, 1, 0), "output_padding": (1, 1)},
        "nn_contrib_conv2d_NCHWc",
    ),
    "few channels and a kernel smaller than the stride": (
        (1, 8, 3, 3),
        (4, 1, 2),
        {"strides": (2, 3)},
        "nn_contrib_conv2d_NCHWc",
    ),
    "many phases": (
        (1, 16, 3, 2),
        (16, 10, 7),
        {"strides": (5, 5), "padding": (2, 1)},
        "nn_contrib_conv2d_NCHWc",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    """The numbers of the definition, by the kernels that the case is for."""
    shape, kernel, attributes, expected = CASES[name]
    function, weight = layer(shape, kernel, **attributes)
    names, run = compiled(function)
    assert any(expected in name for name in names)
    if expected != "nn_conv2d_transpose":
        assert not any("_transpose_" in name.replace("reshape_transpose_reshape", "") for name in names)
    data, rank = numbers(*shape), len(shape) - 2
    wanted = convolve_transposed(
        data.astype("float64"),
        weight.astype("float64"),
        attributes.get("strides", (1,) * rank),
        attributes.get("padding", (0,) * rank),
        (1,) * rank,
        attributes.get("output_padding", (0,) * rank),
        1,
        "float64",
    )
    got = run(data)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "attributes", "dtype"),
    [
        ((8, 3, 3), {"strides": (2, 2), "groups": 2}, "float32"),
        ((16, 3, 3), {"strides": (2, 2), "dilation": (2, 2)}, "float32"),
        ((16, 3, 3), {"strides": (2, 2)}, "int8"),
        ((1, 3, 3), {"strides": (1, 2)}, "float32"),
    ],
)
def test_what_stays(kernel: tuple[int, ...], attributes: dict[str, Any], dtype: str) -> None:
    """Groups, dilation, integers, and too few channels for vectors: the call is left as it is by both passes."""
    function, _ = layer((1, 16, 5, 5), kernel, dtype, **attributes)
    passes = [relay.transform.InferType(), relay.transform.Legalize(), relay.transform.AlterOpLayout()]
    with tvm.target.Target("llvm -mcpu=x86-64-v4"), tvm.transform.PassContext(opt_level=3):
        made = tvm.transform.Sequential(passes)(tvm.IRModule.from_expr(function))["main"].body
    assert made.op.name == "nn.conv2d_transpose"
    assert made.attrs.data_layout == "NCHW"


def test_what_follows_is_in_the_same_kernel() -> None:
    """A batch norm is folded into the weight, and its shift and the relu run while the result is stored; the next
    convolution reads it as it is."""
    function, _ = layer((1, 16, 4, 4), (32, 4, 4), strides=(2, 2), padding=(1, 1))
    factors = [relay.const(np.abs(numbers(32)) + 0.5) for _ in range(4)]
    normal = relay.nn.relu(relay.nn.batch_norm(function.body, *factors)[0])
    last = relay.nn.conv2d(normal, relay.const(numbers(16, 32, 1, 1)))
    names, _ = compiled(relay.Function(function.params, last))
    kernels = [name.removeprefix("tvmgen_default_fused_") for name in names]
    assert any(name.startswith("nn_conv2d_transpose_add_nn_relu_") for name in kernels)
    assert sum("layout_transform" in name for name in kernels) == 2
