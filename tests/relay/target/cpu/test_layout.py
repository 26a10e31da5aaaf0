"""Calls in the layouts that processors prefer: as fast kernels want them, and with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.relay.op.nn.layout_conversion import converted_array
from tilewright.relay.target import alter_layout_rule

CPU = tvm.target.Target("llvm")


def altered(call: Any, shapes: list[tuple[int, ...]], dtype: str = "float32") -> Any:
    """What AlterOpLayout would put in the place of a call."""
    tinfos = [te.placeholder(shape, dtype) for shape in shapes]
    with CPU:
        return alter_layout_rule(call.op)(call.attrs, list(call.args), tinfos, None)


@pytest.mark.parametrize(
    ("attributes", "weight"),
    [
        ({"padding": 1, "strides": 2}, (32, 16, 3, 3)),
        ({}, (48, 16, 1, 1)),
        ({"groups": 16, "padding": 1}, (16, 1, 3, 3)),
        ({"groups": 16, "channels": 32, "kernel_size": 3}, (16, 2, 3, 3)),
        ({"groups": 16, "channels": 32, "padding": 1}, (32, 1, 3, 3)),
    ],
)
def test_conv2d_in_blocks_gives_the_same(attributes: dict[str, Any], weight: tuple[int, ...]) -> None:
    """The blocked call on rearranged arrays is the plain one, rearranged."""
    shape = (1, 16, 6, 5)
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight)
    plain = relay.nn.conv2d(x, w, **attributes)
    made = altered(plain, [shape, weight])
    assert made.op.name.endswith("NCHWc")
    generator = np.random.default_rng(2)
    data = generator.normal(size=shape).astype("float32")
    kernel = generator.normal(size=weight).astype("float32")
    wanted = plain.op.get_attr("FReference")(plain.attrs, data, kernel)
    attrs = made.attrs
    whole = kernel.reshape(wanted.shape[1], -1, *weight[2:]) if attrs.groups > 1 else kernel
    got = made.op.get_attr("FReference")(
        attrs,
        converted_array(data, "NCHW", attrs.data_layout),
        converted_array(whole, "OIHW", attrs.kernel_layout),
    )
    np.testing.assert_allclose(converted_array(got, attrs.out_layout, "NCHW"), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "shapes", "dtype"),
    [
        (
            lambda x, w: relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
            [(1, 5, 5, 16), (3, 3, 16, 16)],
            "float32",
        ),
        (relay.nn.conv2d, [(1, 16, 5, 5), (16, 16, 3, 3)], "int8"),
        (relay.nn.conv2d, [(1, 3, 5, 5), (1, 3, 3, 3)], "float32"),
    ],
)
def test_calls_that_stay_as_they_are(call: Any, shapes: list[tuple[int, ...]], dtype: str) -> None:
    """Other layouts, other types, and channels that would leave vectors empty."""
    variables = [relay.var(f"x{number}", shape=shape, dtype=dtype) for number, shape in enumerate(shapes)]
    assert altered(call(*variables), shapes, dtype) is None


def test_dense_in_blocks_gives_the_same() -> None:
    """The weight is in blocks that divide the units."""
    x, w = relay.var("x", shape=(4, 12)), relay.var("w", shape=(24, 12))
    made = altered(relay.nn.dense(x, w), [(4, 12), (24, 12)])
    assert made.op.name == "nn.contrib_dense_pack"
    generator = np.random.default_rng(2)
    data = generator.normal(size=(4, 12)).astype("float32")
    weight = generator.normal(size=(24, 12)).astype("float32")
    packed = converted_array(weight, "NC", made.attrs.weight_layout)
    got = made.op.get_attr("FReference")(made.attrs, data, packed)
    np.testing.assert_allclose(got, data @ weight.T, rtol=1e-5, atol=1e-5)
