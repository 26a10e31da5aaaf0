"""MobileNet: depthwise separable convolutions (Howard et al., 2017)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload

BLOCKS = (
    (32, 64, False),
    (64, 128, True),
    (128, 128, False),
    (128, 256, True),
    (256, 256, False),
    (256, 512, True),
    (512, 512, False),
    (512, 512, False),
    (512, 512, False),
    (512, 512, False),
    (512, 512, False),
    (512, 1024, True),
    (1024, 1024, False),
)
"""Channels before and after each separable convolution, and whether it halves the image."""
SHALLOW_LEAVES_OUT = range(6, 11)
"""The blocks that a shallow network does not have."""


def _normalised(data: Any, name: str, epsilon: float, layout: str) -> Any:
    return nn.relu(layers.batch_norm_infer(data, epsilon=epsilon, axis=layout.index("C"), name=f"{name}_bn"))


def conv_block(
    data: Any,
    name: str,
    channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> Any:
    """Convolution, normalisation, activation."""
    made = layers.conv2d(
        data,
        channels=channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_layout=layout,
        kernel_layout="OIHW" if layout == "NCHW" else "HWIO",
        name=f"{name}_conv",
    )
    return _normalised(made, name, epsilon, layout)


def separable_conv_block(
    data: Any,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    downsample: bool = False,
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """A convolution of each channel by itself, and one of one by one across channels."""
    shape = (
        (depthwise_channels, 1, *kernel_size) if layout == "NCHW" else (*kernel_size, depthwise_channels, 1)
    )
    depthwise = layers.conv2d(
        data,
        var(f"{name}_weight", shape=shape, dtype=dtype),
        channels=depthwise_channels,
        groups=depthwise_channels,
        kernel_size=kernel_size,
        strides=(2, 2) if downsample else (1, 1),
        padding=padding,
        data_layout=layout,
        kernel_layout="OIHW" if layout == "NCHW" else "HWOI",
        name=f"{name}_depthwise_conv1",
    )
    made = _normalised(depthwise, f"{name}_bn1", epsilon, layout)
    pointwise = layers.conv2d(
        made,
        channels=pointwise_channels,
        kernel_size=(1, 1),
        data_layout=layout,
        kernel_layout="OIHW" if layout == "NCHW" else "HWIO",
        name=f"{name}_conv2",
    )
    return _normalised(pointwise, f"{name}_bn2", epsilon, layout)


def mobile_net(
    num_classes: int = 1000,
    data_shape: tuple[int, ...] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """The network as a function; ``alpha`` widens every layer, ``data_shape`` is in the layout's order."""

    def width(channels: int) -> int:
        return round(channels * alpha)

    data = var("data", shape=data_shape, dtype=dtype)
    body = conv_block(data, "conv_block_1", width(32), strides=(2, 2), layout=layout)
    for number, (before, after, halves) in enumerate(BLOCKS, 1):
        if is_shallow and number - 1 in SHALLOW_LEAVES_OUT:
            continue
        body = separable_conv_block(
            body,
            f"separable_conv_block_{number}",
            width(before),
            width(after),
            downsample=halves,
            layout=layout,
            dtype=dtype,
        )
    flat = nn.batch_flatten(nn.global_avg_pool2d(body, layout=layout))
    result = nn.softmax(layers.dense_add_bias(flat, units=num_classes, name="fc"))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters. ``image_shape`` is in the layout's order."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))
