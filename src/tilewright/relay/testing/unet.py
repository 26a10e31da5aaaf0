"""U-Net: an encoder and a decoder with skip connections at each size (Ronneberger et al., 2015)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import concatenate, sigmoid
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload


def _double(data: Any, channels: int, name: str) -> Any:
    """Two convolutions, each normalised."""
    for number in (1, 2):
        data = layers.conv2d(
            data, channels=channels, kernel_size=(3, 3), padding=(1, 1), name=f"{name}_conv{number}"
        )
        data = nn.relu(layers.batch_norm_infer(data, name=f"{name}_bn{number}"))
    return data


def get_net(
    batch_size: int = 1,
    num_classes: int = 1,
    image_shape: tuple[int, ...] = (3, 128, 128),
    base_channels: int = 64,
    depth: int = 4,
    dtype: str = "float32",
) -> Function:
    """The network as a function of "data" and its parameters. Height and width are multiples of ``2 ** depth``."""
    body: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    across = []
    for level in range(depth):
        body = _double(body, base_channels << level, f"down{level}")
        across.append(body)
        body = nn.max_pool2d(body, (2, 2), (2, 2))
    body = _double(body, base_channels << depth, "bottom")
    for level in reversed(range(depth)):
        channels = base_channels << level
        body = layers.conv2d_transpose(
            body, channels=channels, kernel_size=(2, 2), strides=(2, 2), name=f"up{level}"
        )
        body = nn.bias_add(body, var(f"up{level}_bias"))
        body = _double(concatenate((across[level], body), axis=1), channels, f"merge{level}")
    result = sigmoid(layers.conv_bias(body, "last", num_classes, kernel_size=(1, 1)))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1,
    image_shape: tuple[int, ...] = (3, 128, 128),
    base_channels: int = 64,
    depth: int = 4,
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, base_channels, depth, dtype))
