"""DenseNet: every layer of a block sees the outputs of all before it (Huang et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import concatenate
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError

SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
"""Channels before the first block, channels that each layer adds, and layers of each block, by depth."""
BOTTLENECK = 4
"""The narrow convolution of a layer has this many times the channels that the layer adds."""


def _normalised(data: Any, name: str) -> Any:
    return nn.relu(layers.batch_norm_infer(data, name=f"{name}_batch_norm"))


def _layer(data: Any, growth: int, name: str) -> Any:
    """The input concatenated with what the layer adds."""
    made = _normalised(data, f"{name}_1")
    made = layers.conv2d(made, channels=growth * BOTTLENECK, kernel_size=(1, 1), name=f"{name}_conv1")
    made = _normalised(made, f"{name}_2")
    made = layers.conv2d(made, channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"{name}_conv2")
    return concatenate((data, made), axis=1)


def _between(data: Any, channels: int, name: str) -> Any:
    """Fewer channels and a quarter of the pixels."""
    made = layers.conv2d(_normalised(data, name), channels=channels, kernel_size=(1, 1), name=f"{name}_conv")
    return nn.avg_pool2d(made, (2, 2), (2, 2))


def densenet(
    channels: int, growth: int, blocks: Sequence[int], data_shape: tuple[int, ...], dtype: str, classes: int
) -> Function:
    """A network of blocks of some layers, each of which adds ``growth`` channels."""
    body: Any = var("data", shape=data_shape, dtype=dtype)
    body = layers.conv2d(
        body, channels=channels, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1"
    )
    body = nn.max_pool2d(_normalised(body, "first"), (3, 3), (2, 2), padding=(1, 1))
    for block, count in enumerate(blocks, 1):
        for number in range(1, count + 1):
            body = _layer(body, growth, f"block{block}_layer{number}")
        channels += count * growth
        if block < len(blocks):
            channels //= 2
            body = _between(body, channels, f"between{block}")
    flat = nn.batch_flatten(nn.global_avg_pool2d(_normalised(body, "last")))
    result = layers.dense_add_bias(flat, units=classes, name="dense")
    return Function(free_vars(result), result)


def get_net(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> Function:
    """The network of 121, 161, 169 or 201 layers as a function of "data" and its parameters."""
    if densenet_size not in SIZES:
        raise ModelError(f"DenseNet has {', '.join(map(str, SIZES))} layers, not {densenet_size}")
    channels, growth, blocks = SIZES[densenet_size]
    return densenet(channels, growth, blocks, (batch_size, *image_shape), dtype, classes)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
