"""The network that learned Atari games: three convolutions, two dense layers (Mnih et al., 2015)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload

CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, window and stride."""


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """The network as a function of "data" and its parameters. ``image_shape`` is in the layout's order."""
    body: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for number, (channels, size, stride) in enumerate(CONVOLUTIONS, 1):
        body = layers.conv2d(
            body,
            channels=channels,
            kernel_size=(size, size),
            strides=(stride, stride),
            data_layout=layout,
            kernel_layout="OIHW" if layout == "NCHW" else "HWIO",
            name=f"conv{number}",
        )
        body = nn.relu(nn.bias_add(body, var(f"conv{number}_bias"), axis=layout.index("C")))
    hidden = nn.relu(layers.dense_add_bias(nn.batch_flatten(body), units=512, name="dense1"))
    result = layers.dense_add_bias(hidden, units=num_actions, name="dense2")
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
