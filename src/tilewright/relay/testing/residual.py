"""Residual networks of any depth over images or videos, with normalisation before each convolution (He et al.,
"Identity Mappings in Deep Residual Networks", 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.testing import layers
from tilewright.relay.testing.resnet_plan import plan

EPSILON = 2e-5
_CONVOLUTIONS = {2: layers.conv2d, 3: layers.conv3d}
_MAX_POOLS = {2: nn.max_pool2d, 3: nn.max_pool3d}
_AVERAGES = {2: nn.global_avg_pool2d, 3: nn.global_avg_pool3d}


def residual_unit(
    data: Any,
    num_filter: int,
    stride: Sequence[int],
    dim_match: bool,
    name: str,
    bottle_neck: bool,
    data_layout: str,
    kernel_layout: str,
) -> Any:
    """A residual unit: two convolutions, or three where it is a bottleneck, and a way around them. Where the
    dimensions do not match, the way around is a convolution of kernel size one."""
    axis = data_layout.index("C")
    rank = len(stride)

    def normalised(given: Any, number: int) -> Any:
        return nn.relu(layers.batch_norm_infer(given, epsilon=EPSILON, axis=axis, name=f"{name}_bn{number}"))

    def convolved(given: Any, suffix: str, channels: int, size: int, strides: Sequence[int]) -> Any:
        return _CONVOLUTIONS[rank](
            given,
            channels=channels,
            kernel_size=(size,) * rank,
            strides=tuple(strides),
            padding=(size // 2,) * rank,
            name=f"{name}_{suffix}",
            data_layout=data_layout,
            kernel_layout=kernel_layout,
        )

    one = (1,) * rank
    start = normalised(data, 1)
    if bottle_neck:
        made = convolved(start, "conv1", num_filter // 4, 1, stride)
        made = convolved(normalised(made, 2), "conv2", num_filter // 4, 3, one)
        made = convolved(normalised(made, 3), "conv3", num_filter, 1, one)
    else:
        made = convolved(start, "conv1", num_filter, 3, stride)
        made = convolved(normalised(made, 2), "conv2", num_filter, 3, one)
    return made + (data if dim_match else convolved(start, "sc", num_filter, 1, stride))


def residual_network(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool,
    layout: str,
    kernel_layout: str,
    dtype: str,
) -> Function:
    """A network of ``num_stages`` stages with ``units`` units each; ``filter_list`` has the channels before the first
    stage and of each."""
    axis = layout.index("C")
    rank = len(layout) - 2
    small = data_shape[layout.index("H")] <= 32
    data = var("data", shape=tuple(data_shape), dtype=dtype)
    body = layers.batch_norm_infer(data, epsilon=EPSILON, axis=axis, scale=False, name="bn_data")
    size, stride, padding = (3, 1, 1) if small else (7, 2, 3)
    over_time = rank - 2  # the first convolution is three frames long and looks at every frame
    body = _CONVOLUTIONS[rank](
        body,
        channels=filter_list[0],
        kernel_size=(3,) * over_time + (size, size),
        strides=(1,) * over_time + (stride, stride),
        padding=(1,) * over_time + (padding, padding),
        name="conv0",
        data_layout=layout,
        kernel_layout=kernel_layout,
    )
    if not small:
        body = nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn0"))
        body = _MAX_POOLS[rank](body, (3,) * rank, (2,) * rank, padding=(1,) * rank, layout=layout)
    for stage in range(num_stages):
        for unit in range(units[stage]):
            first = unit == 0
            body = residual_unit(
                body,
                filter_list[stage + 1],
                ((2 if first and stage > 0 else 1),) * rank,
                not first,
                f"stage{stage + 1}_unit{unit + 1}",
                bottle_neck,
                layout,
                kernel_layout,
            )
    body = nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn1"))
    flat = nn.batch_flatten(_AVERAGES[rank](body, layout=layout))
    result = nn.softmax(layers.dense_add_bias(flat, units=num_classes, name="fc1"))
    return Function(free_vars(result), result)


def network_of_depth(
    num_layers: int,
    data_shape: Sequence[int],
    num_classes: int,
    layout: str,
    kernel_layout: str,
    dtype: str,
    **kwargs: Any,
) -> Function:
    """The network with so many layers that can be trained."""
    chosen = plan(num_layers, data_shape[layout.index("H")])
    return residual_network(
        chosen.units,
        len(chosen.units),
        chosen.channels,
        num_classes,
        data_shape,
        chosen.bottle_neck,
        layout,
        kernel_layout,
        dtype,
        **kwargs,
    )
