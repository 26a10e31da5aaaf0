"""Residual networks of any depth for video: convolutions along time, height and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.relay.testing.resnet_plan import plan

EPSILON = 2e-5


def residual_unit(
    data: Any,
    num_filter: int,
    stride: tuple[int, int, int],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
) -> Any:
    """A residual unit; see ``resnet.residual_unit``."""
    axis = data_layout.index("C")

    def normalised(given: Any, number: int) -> Any:
        return nn.relu(layers.batch_norm_infer(given, epsilon=EPSILON, axis=axis, name=f"{name}_bn{number}"))

    def convolved(given: Any, suffix: str, channels: int, size: int, strides: tuple[int, int, int]) -> Any:
        return layers.conv3d(
            given,
            channels=channels,
            kernel_size=(size, size, size),
            strides=strides,
            padding=(size // 2, size // 2, size // 2),
            name=f"{name}_{suffix}",
            data_layout=data_layout,
            kernel_layout=kernel_layout,
        )

    one = (1, 1, 1)
    start = normalised(data, 1)
    if bottle_neck:
        made = convolved(start, "conv1", num_filter // 4, 1, stride)
        made = convolved(normalised(made, 2), "conv2", num_filter // 4, 3, one)
        made = convolved(normalised(made, 3), "conv3", num_filter, 1, one)
    else:
        made = convolved(start, "conv1", num_filter, 3, stride)
        made = convolved(normalised(made, 2), "conv2", num_filter, 3, one)
    return made + (data if dim_match else convolved(start, "sc", num_filter, 1, stride))


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> Function:
    """A network of ``num_stages`` stages; see ``resnet.resnet``."""
    kernel_layout = "OIDHW" if layout == "NCDHW" else "DHWIO"
    axis = layout.index("C")
    small = data_shape[layout.index("H")] <= 32
    data = var("data", shape=tuple(data_shape), dtype=dtype)
    body = layers.batch_norm_infer(data, epsilon=EPSILON, axis=axis, scale=False, name="bn_data")
    body = layers.conv3d(
        body,
        channels=filter_list[0],
        kernel_size=(3, 3, 3) if small else (3, 7, 7),
        strides=(1, 1, 1) if small else (1, 2, 2),
        padding=(1, 1, 1) if small else (1, 3, 3),
        name="conv0",
        data_layout=layout,
        kernel_layout=kernel_layout,
    )
    if not small:
        body = nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn0"))
        body = nn.max_pool3d(body, (3, 3, 3), (2, 2, 2), padding=(1, 1, 1), layout=layout)
    for stage in range(num_stages):
        for unit in range(units[stage]):
            first = unit == 0
            body = residual_unit(
                body,
                filter_list[stage + 1],
                (2, 2, 2) if first and stage > 0 else (1, 1, 1),
                not first,
                f"stage{stage + 1}_unit{unit + 1}",
                bottle_neck,
                layout,
                kernel_layout,
            )
    body = nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn1"))
    flat = nn.batch_flatten(nn.global_avg_pool3d(body, layout=layout))
    result = nn.softmax(layers.dense_add_bias(flat, units=num_classes, name="fc1"))
    return Function(free_vars(result), result)


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Function:
    """The network of this depth as a function of "data" and its parameters."""
    shape = (batch_size, *image_shape)
    chosen = plan(num_layers, shape[layout.index("H")])
    return resnet(
        chosen.units,
        len(chosen.units),
        chosen.channels,
        num_classes,
        shape,
        chosen.bottle_neck,
        layout,
        dtype,
        **kwargs,
    )


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
