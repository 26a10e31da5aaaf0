"""DropDeadTaps: which taps go, and that the result is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform import DropDeadTaps

CONVOLUTIONS = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}


def convolution(extents: tuple[int, ...], taps: tuple[int, ...], **attributes: Any) -> relay.Function:
    """Of two channels to three."""
    data = relay.var("data", shape=(1, 2, *extents))
    weight = relay.var("weight", shape=(3, 2, *taps))
    return relay.Function([data, weight], CONVOLUTIONS[len(extents)](data, weight, **attributes))


def taps_left(function: relay.Function) -> tuple[int, ...]:
    """The extents of the kernel that the convolution has."""
    return tuple(int(extent) for extent in function.body.args[1].checked_type.shape[2:])


@pytest.mark.parametrize(
    ("extents", "taps", "attributes", "left"),
    [
        ((14, 14), (3, 3), {"padding": (24, 24), "dilation": (24, 24)}, (1, 1)),
        ((14, 14), (3, 3), {"padding": (13, 14), "dilation": (13, 14)}, (3, 1)),
        ((14, 30), (3, 3), {"padding": (24, 24), "dilation": (24, 24)}, (1, 3)),
        ((5, 5), (5, 5), {"padding": (12, 12, 0, 0), "dilation": (4, 4)}, (2, 2)),
        ((6,), (7,), {"padding": (15, 15), "dilation": (5,), "strides": (2,)}, (2,)),
        ((1, 8, 8), (3, 3, 3), {"padding": (1, 1, 1)}, (1, 3, 3)),
        ((7, 7), (3, 3), {"padding": (9, 9, 9, 9), "dilation": (9, 9), "strides": (3, 3)}, (1, 1)),
    ],
)
def test_taps_in_the_padding_go(
    extents: tuple[int, ...], taps: tuple[int, ...], attributes: dict[str, Any], left: tuple[int, ...]
) -> None:
    """The kernel that is left has the taps that are read, and gives the same."""
    given = convolution(extents, taps, **attributes)
    made = after(DropDeadTaps(), given)
    assert taps_left(made) == left
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal([int(e) for e in one.checked_type.shape]).astype("float32")
        for one in typed(given).params
    ]
    results = [
        relay.create_executor("debug", tvm.IRModule.from_expr(one)).evaluate()(*arrays).numpy()
        for one in (given, made)
    ]
    assert results[0].shape == results[1].shape
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("extents", "taps", "attributes"),
    [
        ((7, 7), (3, 3), {"padding": (1, 1)}),
        ((14, 14), (3, 3), {"padding": (12, 12), "dilation": (12, 12)}),
        ((4,), (3,), {"padding": (4, 8), "dilation": (6,)}),
    ],
    ids=["ordinary", "read at the edges", "the data would have to be cut"],
)
def test_what_stays(extents: tuple[int, ...], taps: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Taps that are read somewhere, and those that only a cut of the data could replace."""
    given = convolution(extents, taps, **attributes)
    assert_structural_equal(after(DropDeadTaps(), given), typed(given))


def test_every_walk_of_a_line() -> None:
    """All small lines: the pass changes no result and leaves no outer tap that reads padding alone."""
    generator = np.random.default_rng(1)
    for extent, taps, stride, dilation, before, behind in (
        [int(one) for one in generator.integers((1, 1, 1, 1, 0, 0), (6, 5, 4, 8, 12, 12))] for _ in range(150)
    ):
        if extent + before + behind < (taps - 1) * dilation + 1:
            continue
        given = convolution(
            (extent,), (taps,), padding=(before, behind), strides=(stride,), dilation=(dilation,)
        )
        made = after(DropDeadTaps(), given)
        data = generator.standard_normal((1, 2, extent)).astype("float32")
        weight = generator.standard_normal((3, 2, taps)).astype("float32")
        results = [
            relay.create_executor("debug", tvm.IRModule.from_expr(one)).evaluate()(data, weight).numpy()
            for one in (given, made)
        ]
        np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
