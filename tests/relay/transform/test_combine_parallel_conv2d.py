"""Convolutions of one tensor become one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import check, operators, spans_kept

from tilewright import relay
from tilewright.relay import transform

COMBINE = transform.CombineParallelConv2D(2)
X = relay.var("x", shape=(1, 4, 6, 6))


def conv(name: str, filters: int, **attributes: Any) -> Any:
    """A convolution with a weight of this name."""
    return relay.nn.conv2d(X, relay.var(name, shape=(filters, 4, 3, 3)), **attributes)


def test_filters_are_joined() -> None:
    """One convolution, and a slice for each."""
    made = check(COMBINE, relay.Tuple([conv("a", 2), conv("b", 3), conv("c", 5)]))
    assert operators(made) == ["concatenate", "nn.conv2d", *["strided_slice"] * 3]
    assert spans_kept(made)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_biases_and_activations_follow(layout: str) -> None:
    """Wherever the channels are."""
    shape, kernel = ((1, 4, 6, 6), "OIHW") if layout == "NCHW" else ((1, 6, 6, 4), "HWIO")
    x = relay.var("x", shape=shape)
    branches = []
    for name, filters in (("a", 2), ("b", 3)):
        extents = (filters, 4, 3, 3) if layout == "NCHW" else (3, 3, 4, filters)
        made = relay.nn.conv2d(
            x, relay.var(name, shape=extents), kernel_size=(3, 3), data_layout=layout, kernel_layout=kernel
        )
        bias = relay.nn.bias_add(made, relay.var(f"{name}_bias", shape=(filters,)), axis=layout.index("C"))
        scale = relay.var(f"{name}_scale", shape=(filters, 1, 1) if layout == "NCHW" else (filters,))
        branches.append(relay.nn.relu(bias) * scale)
    found = operators(check(COMBINE, relay.Tuple(branches)))
    assert found.count("nn.conv2d") == found.count("nn.bias_add") == found.count("multiply") == 1


@pytest.mark.parametrize("other", [{"strides": (2, 2)}, {"padding": (1, 1)}, {"dilation": (2, 2)}])
def test_other_attributes_stay_apart(other: dict[str, Any]) -> None:
    """They are other convolutions."""
    made = check(COMBINE, relay.Tuple([conv("a", 2), conv("b", 2, **other)]))
    assert operators(made) == ["nn.conv2d", "nn.conv2d"]


def test_groups_stay_apart() -> None:
    """Their filters see different channels."""
    weights = [relay.var(name, shape=(4, 2, 3, 3)) for name in "ab"]
    made = check(COMBINE, relay.Tuple([relay.nn.conv2d(X, w, groups=2) for w in weights]))
    assert operators(made) == ["nn.conv2d", "nn.conv2d"]


def test_constant_weights_fold() -> None:
    """What is left is one convolution with a constant weight."""
    weights = [relay.const(np.ones((n, 4, 3, 3), "float32")) for n in (2, 3, 4)]
    branches = relay.Tuple([relay.nn.conv2d(X, w) for w in weights])
    made = check([transform.CombineParallelConv2D(), transform.FoldConstant()], branches)
    assert operators(made) == ["nn.conv2d", *["strided_slice"] * 3]
