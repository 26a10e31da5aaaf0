"""A small network with a bit of everything: dense layers and convolutions, biases, normalisation, softmax."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.transform import reshape, reshape_like
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload


def get_net(
    input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None
) -> Function:
    """The network as a function of "data" and its parameters, which have the element type ``wtype``."""
    kind = wtype if wtype is not None else dtype
    channels, width = input_shape[1], input_shape[3]
    data = var("data", shape=input_shape, dtype=dtype)

    def both(given: Any, dense_name: str, conv_name: str) -> Any:
        """A dense layer along the rows and a convolution, added."""
        weight = var(dense_name, shape=(width, width), dtype=kind)
        dense = nn.relu(nn.dense(reshape(given, (-1, width)), weight))
        kernel = var(conv_name, shape=(channels, channels, 3, 3), dtype=kind)
        convolved = nn.softmax(nn.conv2d(given, kernel, padding=(1, 1), kernel_size=(3, 3)))
        return reshape_like(dense, given) + convolved

    biased = nn.bias_add(
        both(data, "dense_weight", "conv_weight"), var("bias", shape=(channels,), dtype=kind)
    )
    normalised = layers.batch_norm_infer(biased, name="batch_norm")
    result = both(normalised, "dense2_weight", "conv2_weight")
    return Function(free_vars(result), result)


def get_workload(
    input_shape: tuple[int, ...] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(input_shape, dtype, wtype))
