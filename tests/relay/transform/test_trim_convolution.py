"""TrimConvolution: what a slice of a convolution drops is not computed, and everything else stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform import TrimConvolution

CONVOLUTIONS = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
GENERATOR = np.random.default_rng(5)


def constant(*shape: int) -> relay.Expr:
    """Normal noise."""
    return relay.const(GENERATOR.standard_normal(shape).astype("float32"))


def convolution(extents: tuple[int, ...], taps: tuple[int, ...], **attributes: Any) -> relay.Expr:
    """Of two channels to three."""
    data = relay.var("data", shape=(1, 2, *extents))
    return CONVOLUTIONS[len(extents)](data, constant(3, 2, *taps), **attributes)


def results(*functions: relay.Expr) -> list[np.ndarray]:
    """What each gives for the same data."""
    params = typed(functions[0]).params
    arrays = [
        GENERATOR.standard_normal([int(e) for e in one.checked_type.shape]).astype("float32")
        for one in params
    ]
    return [
        relay.create_executor("debug", tvm.IRModule.from_expr(one)).evaluate()(*arrays).numpy()
        for one in functions
    ]


@pytest.mark.parametrize(
    ("given", "padding"),
    [
        (
            relay.strided_slice(convolution((9,), (3,), padding=(4,), dilation=(2,)), (0, 0, 0), (1, 3, -4)),
            (4, 0),
        ),
        (relay.strided_slice(convolution((9,), (3,), padding=(2,)), (2,), (11,), axes=(2,)), (0, 2)),
        (
            relay.strided_slice(
                convolution((9,), (3,), padding=(2,)), (1,), (9,), axes=(-1,), slice_mode="size"
            ),
            (1, 1),
        ),
        (
            relay.strided_slice(convolution((9,), (4,), padding=(3,), strides=(2,)), (1,), (-1,), axes=(2,)),
            (1, 0),
        ),
        (
            relay.strided_slice(convolution((5, 6), (3, 3), padding=(2, 2)), (0, 0, 1, 0), (1, 3, 7, 6)),
            (1, 2, 2, 0),
        ),
        (
            relay.strided_slice(convolution((4, 5, 6), (3, 1, 3), padding=(2, 0, 1)), (2,), (6,), axes=(2,)),
            (0, 0, 1, 2, 0, 1),
        ),
    ],
    ids=["causal", "front", "sizes", "strides", "images", "volumes"],
)
def test_a_slice_becomes_less_padding(given: relay.Expr, padding: tuple[int, ...]) -> None:
    """The slice is gone, and the result the same."""
    made = after(TrimConvolution(), given)
    assert operators(made) == operators(typed(given))[:1]
    assert tuple(made.body.attrs.padding) == padding
    expected, found = results(given, made)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_elementwise_operators_between_stay() -> None:
    """A bias, a scale of each channel and an activation are computed for what is left."""
    made = relay.nn.bias_add(convolution((9,), (3,), padding=(2,)), constant(3))
    made = relay.nn.relu(relay.multiply(relay.add(made, constant(3, 1)), relay.const(0.5)))
    given = relay.strided_slice(made, (0, 0, 0), (1, 3, -2))
    found = after(TrimConvolution(), given)
    assert operators(found) == ["nn.conv1d", "nn.bias_add", "add", "multiply", "nn.relu"]
    np.testing.assert_allclose(*results(given, found), rtol=1e-5, atol=1e-5)


def shared() -> relay.Expr:
    """A convolution that is also read whole."""
    made = convolution((9,), (3,), padding=(2,))
    return relay.Tuple([relay.strided_slice(made, (0, 0, 0), (1, 3, -2)), made])


@pytest.mark.parametrize(
    "build",
    [
        lambda: relay.strided_slice(convolution((9,), (3,), padding=(2,)), (0, 0, 0), (1, 3, -3)),
        lambda: relay.strided_slice(convolution((9,), (3,), padding=(2,)), (0, 1, 0), (1, 3, 9)),
        lambda: relay.strided_slice(convolution((9,), (3,), padding=(2,)), (0, 0, 0), (1, 3, 9), (1, 1, 2)),
        lambda: relay.strided_slice(
            relay.add(convolution((9,), (3,), padding=(2,)), constant(11)), (2,), (9,), axes=(2,)
        ),
        lambda: relay.strided_slice(
            relay.nn.max_pool1d(convolution((9,), (3,), padding=(2,)), 3), (0,), (2,), axes=(2,)
        ),
        shared,
    ],
    ids=["the data would be cut", "channels", "steps", "an operand that varies", "pooling", "read whole"],
)
def test_what_stays(build: Callable[[], relay.Expr]) -> None:
    """Nothing changes."""
    given = build()
    assert_structural_equal(after(TrimConvolution(), given), typed(given))


def test_every_slice_of_a_line() -> None:
    """All small lines: the result is that of the slice, and the padding never grows."""
    trimmed = 0
    for extent, taps, stride, dilation, before, behind in (
        [int(one) for one in GENERATOR.integers((3, 1, 1, 1, 0, 0), (8, 4, 4, 4, 7, 7))] for _ in range(120)
    ):
        if extent + before + behind < (taps - 1) * dilation + 1:
            continue
        whole = convolution(
            (extent,), (taps,), padding=(before, behind), strides=(stride,), dilation=(dilation,)
        )
        columns = int(typed(whole).body.checked_type.shape[2])
        first = int(GENERATOR.integers(0, columns))
        last = int(GENERATOR.integers(first, columns)) + 1
        given = relay.strided_slice(whole, (first,), (last,), axes=(2,))
        made = after(TrimConvolution(), given)
        if made.body.op.name == "nn.conv1d":
            trimmed += 1
            assert all(
                one <= other for one, other in zip(made.body.attrs.padding, (before, behind), strict=True)
            )
            np.testing.assert_allclose(*results(given, made), rtol=1e-5, atol=1e-5)
    assert trimmed > 20


def test_a_causal_model_has_no_slices() -> None:
    """Compiled, the padding and slice of a causal layer cost nothing."""
    made = relay.nn.relu(relay.strided_slice(convolution((9,), (3,), padding=(2,)), (0, 0, 0), (1, 3, -2)))
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(made), made))
    with tvm.transform.PassContext(opt_level=3):
        optimized, _ = relay.optimize(module, "llvm")
    assert "strided_slice" not in operators(optimized["main"])
