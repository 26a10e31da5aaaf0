"""Convolutions on blocks are dilated convolutions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.relay.transform.checks import check, operators

from tilewright import relay
from tilewright.relay import transform

FLATTEN = transform.FlattenAtrousConv()


def blocked(pads: Any, crops: Any, **attributes: Any) -> Any:
    """The way some frameworks write a dilated convolution."""
    x, w = relay.var("x", shape=(1, 5, 5, 4)), relay.var("w", shape=(3, 3, 4, 6))
    split = relay.nn.space_to_batch_nd(x, (2, 2), pads)
    attributes = {"kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWIO", **attributes}
    return relay.nn.batch_to_space_nd(relay.nn.conv2d(split, w, **attributes), (2, 2), crops)


@pytest.mark.parametrize(
    ("pads", "crops", "padding"),
    [
        (((2, 3), (2, 3)), ((0, 1), (0, 1)), (2, 2, 2, 2)),
        (((0, 1), (0, 1)), ((0, 0), (0, 0)), (0, 0, 1, 1)),
        (((1, 2), (3, 2)), ((1, 0), (1, 2)), (0, 2, 2, 0)),
    ],
)
def test_blocks_are_dilation(pads: Any, crops: Any, padding: Any) -> None:
    """Padding, less what is cropped, is the convolution's own."""
    made = check(FLATTEN, blocked(pads, crops))
    assert operators(made) == ["nn.conv2d"]
    assert tuple(made.body.attrs.dilation) == (2, 2)
    assert tuple(made.body.attrs.padding) == padding


def test_strides_stay() -> None:
    """A convolution that skips places is another one."""
    made = check(FLATTEN, blocked(((2, 3), (2, 3)), ((0, 0), (0, 0)), strides=(2, 2)))
    assert "nn.space_to_batch_nd" in operators(made)


def test_crops_beyond_the_padding_stay() -> None:
    """Results are cut off, which padding cannot say."""
    made = check(FLATTEN, blocked(((0, 1), (0, 1)), ((1, 0), (0, 0))))
    assert "nn.batch_to_space_nd" in operators(made)
