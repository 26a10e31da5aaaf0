"""Both directions, one after the other."""

from __future__ import annotations

import numpy as np
from tests.relay.transform.checks import after, assert_same_value, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform

GENERATOR = np.random.default_rng(3)


def constant(*shape: int) -> relay.Constant:
    """Random numbers."""
    return relay.const(GENERATOR.standard_normal(shape).astype("float32"))


def network() -> relay.Function:
    """Factors before and after a convolution."""
    x = relay.var("x", shape=(1, 4, 5, 5))
    layer = relay.nn.conv2d(x * constant(4, 1, 1), constant(8, 4, 3, 3))
    return typed(relay.tanh(layer * constant(8, 1, 1)))


def test_factors_on_both_sides_go() -> None:
    """At level three, where the passes run."""
    before = network()
    with tvm.transform.PassContext(opt_level=3):
        made = after(transform.FoldScaleAxis(), before)
    assert operators(made) == ["nn.conv2d", "tanh"]
    assert_same_value(before, made, atol=1e-4)


def test_below_level_three_nothing_happens() -> None:
    """The parts say when they run."""
    with tvm.transform.PassContext(opt_level=2):
        made = after(transform.FoldScaleAxis(), network())
    assert operators(made).count("multiply") == 2
