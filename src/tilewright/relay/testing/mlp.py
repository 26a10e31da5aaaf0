"""A multilayer perceptron: three dense layers."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Function:
    """The model as a function of "data" and its parameters."""
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    hidden = nn.batch_flatten(data)
    for number, units in ((1, 128), (2, 64)):
        hidden = nn.relu(layers.dense_add_bias(hidden, units=units, name=f"fc{number}"))
    result = nn.softmax(layers.dense_add_bias(hidden, units=num_classes, name="fc3"))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The model as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
