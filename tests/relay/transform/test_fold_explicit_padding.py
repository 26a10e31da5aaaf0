"""Padding becomes part of the operator that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import check, operators

from tilewright import relay
from tilewright.relay import transform

FOLD = transform.FoldExplicitPadding()


@pytest.mark.parametrize(
    ("layout", "kernel", "shape", "widths"),
    [
        ("NCHW", "OIHW", (1, 2, 5, 6), ((0, 0), (0, 0), (1, 2), (0, 1))),
        ("NHWC", "HWIO", (1, 5, 6, 2), ((0, 0), (1, 2), (0, 1), (0, 0))),
    ],
)
def test_convolutions(layout: str, kernel: str, shape: Any, widths: Any) -> None:
    """In any layout, added to the padding that is there."""
    x = relay.var("x", shape=shape)
    w = relay.var("w", shape=(4, 2, 3, 3) if kernel == "OIHW" else (3, 3, 2, 4))
    made = check(
        FOLD,
        relay.nn.conv2d(
            relay.nn.pad(x, widths),
            w,
            padding=(1, 0),
            data_layout=layout,
            kernel_layout=kernel,
            kernel_size=(3, 3),
        ),
    )
    assert operators(made) == ["nn.conv2d"]
    assert tuple(made.body.attrs.padding) == (2, 0, 3, 1)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rank: int) -> None:
    """One and three spatial axes."""
    x, w = relay.var("x", shape=(1, 2, *[5] * rank)), relay.var("w", shape=(4, 2, *[3] * rank))
    convolution = getattr(relay.nn, f"conv{rank}d")
    padded = relay.nn.pad(x, ((0, 0), (0, 0), *[(1, 1)] * rank))
    assert operators(check(FOLD, convolution(padded, w))) == [f"nn.conv{rank}d"]


def test_pooling() -> None:
    """The least number around a maximum, zeros around a mean that counts them."""
    x = relay.var("x", shape=(1, 2, 5, 5))
    widths = ((0, 0), (0, 0), (1, 1), (1, 1))
    most = relay.nn.max_pool2d(relay.nn.pad(x, widths, float(np.finfo("float32").min)), (3, 3), (2, 2))
    assert operators(check(FOLD, most)) == ["nn.max_pool2d"]
    mean = relay.nn.avg_pool2d(relay.nn.pad(x, widths), (3, 3), (2, 2))
    made = check(FOLD, mean)
    assert operators(made) == ["nn.avg_pool2d"]
    assert made.body.attrs.count_include_pad


@pytest.mark.parametrize(
    ("widths", "value"),
    [(((0, 0), (0, 0), (1, 1), (1, 1)), 1.0), (((0, 0), (1, 1), (1, 1), (1, 1)), 0.0)],
)
def test_other_padding_stays(widths: Any, value: float) -> None:
    """Numbers other than zero, and padding around the channels."""
    x = relay.var("x", shape=(1, 2, 5, 5))
    padded = relay.nn.pad(x, widths, value)
    w = relay.var("w", shape=(4, 2 if widths[1] == (0, 0) else 4, 3, 3))
    assert operators(check(FOLD, relay.nn.conv2d(padded, w))) == ["nn.pad", "nn.conv2d"]


def test_zeros_around_a_maximum_stay() -> None:
    """They may be greater than the data."""
    x = relay.var("x", shape=(1, 2, 5, 5))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.0)
    assert operators(check(FOLD, relay.nn.max_pool2d(padded, (3, 3)))) == ["nn.pad", "nn.max_pool2d"]
