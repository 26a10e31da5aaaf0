"""Factors before a layer move into its weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import check, operators, spans_kept

from tilewright import relay
from tilewright.relay import transform

FOLD = [transform.ForwardFoldScaleAxis(), transform.FoldConstant()]
GENERATOR = np.random.default_rng(2)


def constant(*shape: int, positive: bool = False) -> relay.Constant:
    """Random numbers."""
    values = GENERATOR.standard_normal(shape)
    return relay.const((np.abs(values) + 0.5 if positive else values).astype("float32"))


def data(*shape: int) -> relay.Var:
    """The input."""
    return relay.var("x", shape=shape or (1, 4, 5, 5))


def conv(value: Any, groups: int = 1, channels: int = 8) -> Any:
    """A convolution with a constant weight."""
    return relay.nn.conv2d(value, constant(channels, 4 // groups, 3, 3), groups=groups)


POSITIVE: Any = {"positive": True}
CASES: dict[str, Callable[[], Any]] = {
    "conv2d": lambda: conv(data() * constant(4, 1, 1)),
    "the factor in front": lambda: conv(constant(1, 4, 1, 1) * data()),
    "a scalar": lambda: conv(data() * relay.const(2.0)),
    "groups": lambda: conv(data() * constant(4, 1, 1), groups=2),
    "groups and a scalar": lambda: conv(data() * relay.const(2.0), groups=2),
    "depthwise": lambda: conv(data() * constant(4, 1, 1), groups=4, channels=4),
    "two filters a channel": lambda: conv(data() * constant(4, 1, 1), groups=4),
    "groups in HWIO": lambda: relay.nn.conv2d(
        data(1, 5, 5, 4) * constant(4),
        constant(3, 3, 2, 8),
        groups=2,
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
    ),
    "relu": lambda: conv(relay.nn.relu(data() * constant(4, 1, 1, **POSITIVE))),
    "a sum": lambda: conv((data() * constant(4, 1, 1, **POSITIVE)) + constant(4, 1, 1)),
    "a difference": lambda: conv(constant(4, 1, 1) - (data() * constant(4, 1, 1, **POSITIVE))),
    "two factors": lambda: conv(relay.nn.relu(data() * constant(4, 1, 1, **POSITIVE)) * constant(4, 1, 1)),
    "zeros around": lambda: conv(relay.nn.pad(data() * constant(4, 1, 1), ((0, 0), (0, 0), (1, 1), (1, 1)))),
    "NHWC": lambda: relay.nn.conv2d(
        data(1, 5, 5, 4) * constant(4),
        constant(3, 3, 4, 8),
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
    ),
    "blocks": lambda: relay.nn.contrib_conv2d_nchwc(
        data(1, 2, 5, 5, 2) * constant(1, 2, 1, 1, 2),
        constant(2, 2, 3, 3, 2, 4),
        channels=8,
        kernel_size=(3, 3),
        data_layout="NCHW2c",
        kernel_layout="OIHW2i4o",
        out_layout="NCHW4c",
    ),
    "depthwise blocks": lambda: relay.nn.contrib_depthwise_conv2d_nchwc(
        data(1, 2, 5, 5, 2) * constant(1, 2, 1, 1, 2),
        constant(2, 1, 3, 3, 1, 2),
        channels=4,
        kernel_size=(3, 3),
        groups=4,
        data_layout="NCHW2c",
        kernel_layout="OIHW1i2o",
        out_layout="NCHW2c",
    ),
    "dense": lambda: relay.nn.dense(data(2, 4) * constant(4), constant(8, 4)),
    "conv3d": lambda: relay.nn.conv3d(data(1, 4, 3, 3, 3) * constant(4, 1, 1, 1), constant(8, 4, 3, 3, 3)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_product_goes(name: str) -> None:
    """The weight is another constant, and the program computes the same."""
    made = check(FOLD, CASES[name](), atol=1e-4)
    assert "multiply" not in operators(made)


def test_all_users_take_the_factor() -> None:
    """Two layers behind one product."""
    scaled = relay.nn.relu(data() * constant(4, 1, 1, positive=True))
    made = check(FOLD, conv(scaled) + conv(scaled), atol=1e-4)
    assert operators(made).count("multiply") == 0


STAYS: dict[str, Callable[[], Any]] = {
    "a factor that may be negative, before relu": lambda: conv(relay.nn.relu(data() * constant(4, 1, 1))),
    "a factor that may be zero, before a sum": lambda: conv((data() * constant(4, 1, 1)) + constant(4, 1, 1)),
    "a factor along another axis": lambda: conv(data() * constant(1, 5)),
    "a factor that is an input, on a constant weight": lambda: conv(data() * relay.var("s", shape=(4, 1, 1))),
    "a factor as large as the data": lambda: relay.nn.dense(
        data(1, 4) * relay.var("gate", shape=(1, 4)), relay.var("w", shape=(8, 4))
    ),
    "a result": lambda: data() * constant(4, 1, 1),
    "an operator between": lambda: conv(relay.tanh(data() * constant(4, 1, 1))),
}


@pytest.mark.parametrize("name", sorted(STAYS))
def test_the_product_stays(name: str) -> None:
    """Where the weight cannot take it, or should not."""
    assert "multiply" in operators(check(FOLD, STAYS[name]()))


def test_shared_products_stay() -> None:
    """Somebody else wants them."""
    scaled = data() * constant(4, 1, 1)
    made = check(FOLD, relay.Tuple([conv(scaled), relay.tanh(scaled)]))
    assert operators(made).count("multiply") == 1


def test_variables_are_multiplied_at_run_time() -> None:
    """The weight, which is smaller than the data, in their place."""
    w, s = relay.var("w", shape=(8, 4, 3, 3)), relay.var("s", shape=(4, 1, 1))
    made = check(FOLD[0], relay.nn.conv2d(data() * s, w))
    assert operators(made) == ["squeeze", "expand_dims", "multiply", "nn.conv2d"]
    assert spans_kept(made)
