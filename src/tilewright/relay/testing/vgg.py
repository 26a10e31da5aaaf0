"""VGG: stacks of three by three convolutions, three dense layers (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError

CHANNELS = (64, 128, 256, 512, 512)
STACKS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Convolutions in each stack, by depth."""


def get_feature(
    internal_layer: Any, layers: Sequence[int], filters: Sequence[int], batch_norm: bool = False
) -> Any:
    """Stacks of convolutions with as many ``layers`` and ``filters`` each; pooling ends a stack."""
    for stack, (count, channels) in enumerate(zip(layers, filters, strict=True), 1):
        for number in range(1, count + 1):
            internal_layer = _convolution(internal_layer, f"conv{stack}_{number}", channels)
            if batch_norm:
                internal_layer = _normalised(internal_layer, f"bn{stack}_{number}")
            internal_layer = nn.relu(internal_layer)
        internal_layer = nn.max_pool2d(internal_layer, (2, 2), (2, 2))
    return internal_layer


def _convolution(data: Any, name: str, channels: int) -> Any:
    return layers.conv_bias(data, name, channels, kernel_size=(3, 3), padding=(1, 1))


def _normalised(data: Any, name: str) -> Any:
    return layers.batch_norm_infer(data, name=name)


def get_classifier(input_data: Any, num_classes: int) -> Any:
    """The dense layers; dropout between them does nothing in a model that is used."""
    hidden: Any = nn.batch_flatten(input_data)
    for name in ("fc6", "fc7"):
        hidden = nn.dropout(nn.relu(layers.dense_add_bias(hidden, units=4096, name=name)), rate=0.5)
    return layers.dense_add_bias(hidden, units=num_classes, name="fc8")


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:
    """The network of 11, 13, 16 or 19 layers as a function of "data" and its parameters."""
    if num_layers not in STACKS:
        raise ModelError(f"VGG has 11, 13, 16 or 19 layers, not {num_layers}")
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    feature = get_feature(data, STACKS[num_layers], CHANNELS, batch_norm)
    result = nn.softmax(get_classifier(feature, num_classes))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
