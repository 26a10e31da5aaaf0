"""Factors after a layer move into its weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import check, operators, spans_kept

from tilewright import relay
from tilewright.relay import transform

FOLD = [transform.BackwardFoldScaleAxis(), transform.FoldConstant()]
GENERATOR = np.random.default_rng(1)


def constant(*shape: int, positive: bool = False) -> relay.Constant:
    """Random numbers."""
    values = GENERATOR.standard_normal(shape)
    return relay.const((np.abs(values) + 0.5 if positive else values).astype("float32"))


def conv(groups: int = 1) -> Any:
    """A convolution with a constant weight."""
    x = relay.var("x", shape=(1, 4, 5, 5))
    return relay.nn.conv2d(x, constant(8, 4 // groups, 3, 3), padding=(1, 1), groups=groups)


CASES: dict[str, Callable[[], Any]] = {
    "conv2d": lambda: conv() * constant(8, 1, 1),
    "the factor in front": lambda: constant(1, 8, 1, 1) * conv(),
    "conv2d_transpose": lambda: (
        relay.nn.conv2d_transpose(relay.var("x", shape=(1, 4, 5, 5)), constant(4, 8, 3, 3), strides=(2, 2))
        * constant(8, 1, 1)
    ),
    "a scalar": lambda: conv() * relay.const(3.0),
    "groups": lambda: conv(2) * constant(8, 1, 1),
    "depthwise": lambda: conv(4) * constant(8, 1, 1),
    "relu": lambda: relay.nn.relu(conv()) * constant(8, 1, 1, positive=True),
    "leaky relu": lambda: relay.nn.leaky_relu(conv(), 0.1) * constant(8, 1, 1, positive=True),
    "a bias": lambda: relay.nn.bias_add(conv(), constant(8)) * constant(8, 1, 1),
    "a sum": lambda: (conv() + constant(8, 1, 1)) * constant(8, 1, 1),
    "a difference": lambda: (constant(8, 1, 1) - conv()) * constant(8, 1, 1),
    "two layers": lambda: (conv() + conv()) * constant(8, 1, 1),
    "two factors": lambda: relay.nn.relu(conv() * constant(8, 1, 1)) * constant(8, 1, 1, positive=True),
    "zeros around": lambda: relay.nn.pad(conv(), ((0, 0), (0, 0), (1, 1), (1, 1))) * constant(8, 1, 1),
    "NHWC": lambda: (
        relay.nn.conv2d(
            relay.var("x", shape=(1, 5, 5, 4)),
            constant(3, 3, 4, 8),
            kernel_size=(3, 3),
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
        * constant(8)
    ),
    "blocks": lambda: (
        relay.nn.contrib_conv2d_nchwc(
            relay.var("x", shape=(1, 2, 5, 5, 2)),
            constant(2, 2, 3, 3, 2, 4),
            channels=8,
            kernel_size=(3, 3),
            data_layout="NCHW2c",
            kernel_layout="OIHW2i4o",
            out_layout="NCHW4c",
        )
        * constant(1, 2, 1, 1, 4)
    ),
    "conv1d": lambda: relay.nn.conv1d(relay.var("x", shape=(1, 4, 5)), constant(8, 4, 3)) * constant(8, 1),
    "conv3d": lambda: (
        relay.nn.conv3d(relay.var("x", shape=(1, 4, 3, 3, 3)), constant(8, 4, 3, 3, 3)) * constant(8, 1, 1, 1)
    ),
    "dense": lambda: relay.nn.dense(relay.var("x", shape=(2, 4)), constant(8, 4)) * constant(8),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_product_goes(name: str) -> None:
    """The weight is another constant, and the program computes the same."""
    made = check(FOLD, CASES[name](), atol=1e-4)
    assert "multiply" not in operators(made)


def test_a_batch_norm_after_a_convolution_is_a_bias() -> None:
    """What is left of it is one sum."""
    norm = relay.nn.batch_norm(conv(), *[constant(8, positive=True) for _ in range(4)])[0]
    made = check([transform.SimplifyInference(), transform.FoldConstant(), *FOLD], norm, atol=1e-4)
    assert operators(made) == ["nn.conv2d", "add"]


def test_variables_are_multiplied_at_run_time() -> None:
    """The weight, which is smaller than the data, in their place."""
    x, w, s = (
        relay.var("x", shape=(1, 4, 9, 9)),
        relay.var("w", shape=(8, 4, 3, 3)),
        relay.var("s", shape=(8, 1, 1)),
    )
    made = check(FOLD[0], relay.nn.conv2d(x, w) * s)
    assert operators(made) == ["squeeze", "expand_dims", "multiply", "nn.conv2d"]
    assert spans_kept(made)


STAYS: dict[str, Callable[[], Any]] = {
    "a factor that may be negative, after relu": lambda: relay.nn.relu(conv()) * constant(8, 1, 1),
    "a factor along another axis": lambda: conv() * constant(1, 5),
    "a factor that is an input, on a constant weight": lambda: conv() * relay.var("s", shape=(8, 1, 1)),
    "a factor as large as the data": lambda: (
        relay.nn.dense(relay.var("x", shape=(1, 4)), relay.var("w", shape=(8, 4)))
        * relay.var("gate", shape=(1, 8))
    ),
    "a transposed convolution in groups": lambda: (
        relay.nn.conv2d_transpose(relay.var("x", shape=(1, 4, 5, 5)), constant(4, 4, 3, 3), groups=2)
        * constant(8, 1, 1)
    ),
    "a sum with other data": lambda: (conv() + relay.var("y", shape=(1, 8, 5, 5))) * constant(8, 1, 1),
    "integers": lambda: (
        relay.nn.dense(
            relay.var("x", shape=(2, 4), dtype="int8"),
            relay.const(np.ones((8, 4), "int8")),
            out_dtype="int32",
        )
        * relay.const(3)
    ),
}


@pytest.mark.parametrize("name", sorted(STAYS))
def test_the_product_stays(name: str) -> None:
    """Where the weight cannot take it, or should not."""
    assert "multiply" in operators(check(FOLD, STAYS[name]()))


def test_shared_results_stay() -> None:
    """Somebody else wants what was there before the factor."""
    shared = conv()
    made = check(FOLD, relay.Tuple([shared * constant(8, 1, 1), relay.nn.relu(shared)]))
    assert "multiply" in operators(made)


def test_a_long_chain() -> None:
    """Of factors and relus behind one layer: one weight takes all of them."""
    made: Any = relay.nn.dense(relay.var("x", shape=(2, 4)), constant(3, 4))
    for _ in range(2_500):
        made = relay.nn.relu(made * relay.const(np.ones(3, "float32")))
    done = check(FOLD, made * relay.const(np.ones(3, "float32")))
    assert operators(done) == ["nn.dense", *["nn.relu"] * 2_500]
