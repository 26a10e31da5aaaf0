"""Transposed convolution with channels in blocks, phase by phase, scheduled for this machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.relay.op.nn.convolution_rules import convolve_transposed
from tilewright.relay.op.nn.layout_conversion import converted_array
from tilewright.topi.utils import InvalidShapeError
from tilewright.topi.x86 import axis_phases


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(("before", "after", "more"), [(0, 0, 0), (1, 0, 0), (0, 1, 1), (2, 1, 0)])
def test_the_phases_of_an_axis_read_what_its_definition_adds_up(
    taps: int, stride: int, before: int, after: int, more: int
) -> None:
    """Element i of the input and tap k meet in element i * stride + k - before of the result, and nowhere else; the
    zeros on both sides of the input are enough for all that the phases read."""
    extent = 4
    length = (extent - 1) * stride + taps - before - after + more
    found = axis_phases(extent, taps, stride, before, after, more)
    assert found.count == -(-length // stride)
    wanted = {(i * stride + k - before, i, k) for i in range(extent) for k in range(taps)}
    met = set()
    for remainder, phase in enumerate(found.phases):
        for number in range(found.count):
            for tap in range(phase.taps):
                at = number + phase.shift - tap
                assert -found.before <= at < extent + found.after
                if 0 <= at < extent:
                    met.add((number * stride + remainder, at, phase.first + tap * stride))
    assert {one for one in met if one[0] < length} == {one for one in wanted if 0 <= one[0] < length}


CASES: list[tuple[tuple[int, int, int, int], tuple[int, int, int], dict[str, Any]]] = [
    ((1, 32, 4, 4), (48, 4, 4), {"strides": (2, 2), "padding": (1, 1)}),
    ((2, 16, 5, 3), (32, 3, 3), {"strides": (2, 2), "padding": (1, 1), "output_padding": (1, 1)}),
    ((1, 16, 3, 5), (16, 2, 2), {"strides": (2, 2), "padding": (0, 0)}),
    ((1, 8, 4, 3), (16, 2, 1), {"strides": (3, 2), "padding": (0, 0)}),
    ((1, 16, 4, 4), (16, 5, 3), {"strides": (2, 3), "padding": (2, 0, 1, 1), "output_padding": (1, 0)}),
    ((1, 16, 4, 4), (16, 2, 2), {"strides": (1, 2), "padding": (2, 2)}),
    ((1, 16, 1, 9), (16, 1, 4), {"strides": (1, 4), "padding": (0, 0)}),
]


@pytest.mark.parametrize(("shape", "kernel", "attributes"), CASES)
def test_values(
    shape: tuple[int, int, int, int], kernel: tuple[int, int, int], attributes: dict[str, Any]
) -> None:
    """As the definition says, with a bias and a relu computed on the way, for any kernel, stride and padding."""
    outputs, tall, wide = kernel
    more = attributes.get("output_padding", (0, 0))
    generator = np.random.default_rng(3)
    data = generator.standard_normal(shape).astype("float32")
    weight = generator.standard_normal((shape[1], outputs, tall, wide)).astype("float32")
    bias = generator.standard_normal((1, outputs, 1, 1)).astype("float32")
    layouts = ("NCHW8c", "OIHW8i16o", "NCHW16c")
    arrays = [
        converted_array(data, "NCHW", layouts[0]),
        converted_array(weight, "IOHW", layouts[1]),
        converted_array(bias, "NCHW", layouts[2]),
    ]
    inputs = [te.placeholder(array.shape, "float32") for array in arrays]
    with tvm.target.Target("llvm"):
        made = topi.x86.conv2d_transpose_NCHWc(
            inputs[0], inputs[1], attributes["strides"], attributes["padding"], None, more
        )
        result = topi.nn.relu(topi.add(made, inputs[2]))
        function = tvm.build(topi.x86.schedule_conv2d_transpose_NCHWc(result), [*inputs, result])
    convolved = convolve_transposed(
        data.astype("float64"),
        weight.astype("float64"),
        attributes["strides"],
        attributes["padding"],
        (1, 1),
        more,
        1,
        "float64",
    )
    wanted = np.maximum(convolved + bias, 0)
    got = tvm.nd.empty(converted_array(wanted, "NCHW", layouts[2]).shape)
    function(*[tvm.nd.array(np.ascontiguousarray(array)) for array in arrays], got)
    np.testing.assert_allclose(
        converted_array(got.numpy(), layouts[2], "NCHW"), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max()
    )


def test_blocks_must_agree() -> None:
    """A kernel for other blocks of input channels is refused."""
    with pytest.raises(InvalidShapeError, match="2 blocks of 8 channels, the kernel 1 blocks of 16"):
        topi.x86.conv2d_transpose_NCHWc(
            te.placeholder((1, 2, 4, 4, 8)), te.placeholder((1, 1, 2, 2, 16, 16)), 2, 0, None, 0
        )
