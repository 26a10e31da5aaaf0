"""LeNet: two convolutions, three dense layers, hyperbolic tangents between."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import tanh
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Function:
    """The model as a function of "data" and its parameters."""
    features: Any = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for number, channels, padding in ((1, 6, 2), (2, 16, 0)):
        features = tanh(
            layers.conv_bias(
                features, f"conv{number}", channels, kernel_size=(5, 5), padding=(padding, padding)
            )
        )
        features = nn.avg_pool2d(features, (2, 2), (2, 2))
    hidden = nn.batch_flatten(features)
    for number, units in ((1, 120), (2, 84)):
        hidden = tanh(layers.dense_add_bias(hidden, units=units, name=f"fc{number}"))
    result = nn.softmax(layers.dense_add_bias(hidden, units=num_classes, name="fc3"))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The model as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
