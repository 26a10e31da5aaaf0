"""Convolutions with sparse weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, check, operators, typed, value

from tilewright import relay
from tilewright.relay import transform
from tilewright.relay.transform.lib.sparse_weights import block_sparse

GENERATOR = np.random.default_rng(6)


def sparse(*shape: int) -> np.ndarray:
    """A weight of which most elements are zero."""
    values = GENERATOR.standard_normal(shape) * (GENERATOR.random(shape) < 0.2)
    return values.astype("float32")


def convolution(weight: Any, size: int, layout: str = "NHWC", **attributes: Any) -> Any:
    """A convolution that keeps the extents of its data."""
    x = relay.var("x", shape=(1, 5, 5, 4) if layout == "NHWC" else (1, 4, 5, 5))
    attributes = {"padding": (size // 2, size // 2), **attributes}
    return relay.nn.conv2d(
        x,
        weight,
        kernel_size=(size, size),
        data_layout=layout,
        kernel_layout="HWIO" if layout == "NHWC" else "OIHW",
        **attributes,
    )


@pytest.mark.parametrize("size", [1, 3])
def test_variables_become_three(size: int) -> None:
    """The convolution computes the same from its parts."""
    weight = sparse(size, size, 4, 8)
    parts = block_sparse(weight.transpose(3, 0, 1, 2).reshape(8, -1), 2, 4)
    before = typed(convolution(relay.var("w", shape=weight.shape), size))
    shape = [*parts[0].shape, *parts[1].shape, *parts[2].shape]
    made = after(transform.Conv2dToSparse(["w"], [shape], "NHWC", size), before)
    assert operators(made) == ["nn.sparse_conv2d"]
    data = GENERATOR.standard_normal((1, 5, 5, 4)).astype("float32")
    np.testing.assert_allclose(
        value(made, [data, *parts]), value(before, [data, weight]), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(("layout", "size"), [("NHWC", 1), ("NHWC", 3), ("NCHW", 1), ("NCHW", 3)])
def test_constants_with_zeros_enough(layout: str, size: int) -> None:
    """The blocks are made by the pass."""
    shape = (size, size, 4, 8) if layout == "NHWC" else (8, 4, size, size)
    given = convolution(relay.const(sparse(*shape)), size, layout)
    made = check(transform.Conv2dToSparse2(layout, size, (2, 4), 0.5), given)
    assert operators(made) == ["nn.sparse_conv2d"]


def test_constants_with_few_zeros_stay() -> None:
    """They would take more space."""
    weight = relay.const(np.ones((3, 3, 4, 8), "float32"))
    made = check(transform.Conv2dToSparse2("NHWC", 3, (1, 1), 0.5), convolution(weight, 3))
    assert operators(made) == ["nn.conv2d"]


@pytest.mark.parametrize(
    "other", [{"strides": (2, 2)}, {"padding": (0, 0)}, {"dilation": (2, 2), "padding": (2, 2)}]
)
def test_other_convolutions_stay(other: dict[str, Any]) -> None:
    """A sparse one has stride one and keeps the extents."""
    given = convolution(relay.const(sparse(3, 3, 4, 8)), 3, **other)
    assert operators(check(transform.Conv2dToSparse2("NHWC", 3, (1, 1), 0.5), given)) == ["nn.conv2d"]
