"""SqueezeNet: convolutions squeezed to few channels and expanded again (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import concatenate
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError

FIRST = {"1.0": (96, 7, 2), "1.1": (64, 3, 2)}
"""Channels, window and stride of the first convolution, by version."""
FIRES: dict[str, tuple[tuple[int, int] | str, ...]] = {
    "1.0": (
        (16, 64),
        (16, 64),
        (32, 128),
        "pool",
        (32, 128),
        (48, 192),
        (48, 192),
        (64, 256),
        "pool",
        (64, 256),
    ),
    "1.1": (
        (16, 64),
        (16, 64),
        "pool",
        (32, 128),
        (32, 128),
        "pool",
        (48, 192),
        (48, 192),
        (64, 256),
        (64, 256),
    ),
}
"""The layers after it: pooling, and modules with the channels that they squeeze and expand to."""


def _convolution(data: Any, channels: int, size: int, name: str, padding: int = 0, stride: int = 1) -> Any:
    return nn.relu(
        layers.conv_bias(
            data,
            name,
            channels,
            kernel_size=(size, size),
            padding=(padding, padding),
            strides=(stride, stride),
        )
    )


def _fire(data: Any, squeezed: int, expanded: int, name: str) -> Any:
    squeeze = _convolution(data, squeezed, 1, f"{name}_squeeze")
    return concatenate(
        (
            _convolution(squeeze, expanded, 1, f"{name}_expand1x1"),
            _convolution(squeeze, expanded, 3, f"{name}_expand3x3", padding=1),
        ),
        axis=1,
    )


def get_net(
    batch_size: int, image_shape: tuple[int, ...], num_classes: int, version: str, dtype: str
) -> Function:
    """The network of version "1.0" or "1.1" as a function of "data" and its parameters."""
    if version not in FIRST:
        raise ModelError(f"SqueezeNet has versions 1.0 and 1.1, not {version!r}")
    channels, size, stride = FIRST[version]
    body: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = _convolution(body, channels, size, "conv1", stride=stride)
    body = nn.max_pool2d(body, (3, 3), (2, 2))
    number = 2
    for step in FIRES[version]:
        if isinstance(step, str):
            body = nn.max_pool2d(body, (3, 3), (2, 2))
        else:
            body = _fire(body, *step, f"fire{number}")
            number += 1
    body = _convolution(nn.dropout(body, rate=0.5), num_classes, 1, "conv_final")
    result = nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(body)))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
