"""How a convolution walks: every attribute axis by axis, and what is not a plain walk."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import typed

from tilewright import relay
from tilewright.relay.transform.lib.convolution_geometry import Walk, walk_of


def test_one_value_for_all_axes() -> None:
    """Attributes that are one number, one for each axis, or those before and those after."""
    data, weight = relay.var("x", shape=(2, 3, 9, 8)), relay.var("w", shape=(5, 3, 3, 2))
    made = typed(relay.nn.conv2d(data, weight, strides=2, padding=(1, 0, 2, 1), dilation=(2, 1)))
    assert walk_of(made.body) == Walk(
        (2, 3, 9, 8), (5, 3, 3, 2), (2, 5, 4, 4), (2, 2), (2, 1), (1, 0), (2, 1)
    )


@pytest.mark.parametrize(
    "given",
    [
        relay.nn.conv1d(relay.var("x", shape=(1, 4, relay.Any())), relay.var("w", shape=(4, 4, 3))),
        relay.nn.conv2d(
            relay.var("x", shape=(1, 9, 9, 4)),
            relay.var("w", shape=(3, 3, 4, 4)),
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
        relay.nn.conv2d(
            relay.var("x", shape=(1, 4, 9, 9)), relay.var("w", shape=(4, 4, 3, 3)), out_layout="NHWC"
        ),
    ],
    ids=["unknown extent", "another layout", "another layout of the result"],
)
def test_no_plain_walk(given: relay.Expr) -> None:
    """What the rewriting passes leave alone."""
    assert walk_of(typed(given).body) is None
