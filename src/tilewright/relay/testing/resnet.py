"""Residual networks of any depth for images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.function import Function
from tilewright.relay.testing import residual
from tilewright.relay.testing.init import create_workload


def residual_unit(
    data: Any,
    num_filter: int,
    stride: tuple[int, int],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
) -> Any:
    """Two or three convolutions and a way around them; see ``residual.residual_unit``."""
    return residual.residual_unit(
        data, num_filter, stride, dim_match, name, bottle_neck, data_layout, kernel_layout
    )


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """A network of ``num_stages`` stages; see ``residual.residual_network``."""
    return residual.residual_network(
        units,
        num_stages,
        filter_list,
        num_classes,
        data_shape,
        bottle_neck,
        layout,
        _kernel_layout(layout),
        dtype,
    )


def _kernel_layout(layout: str) -> str:
    return "OIHW" if layout == "NCHW" else "HWIO"


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Function:
    """The network of this depth as a function of "data" and its parameters. The layout orders ``image_shape``."""
    shape = (batch_size, *image_shape)
    return residual.network_of_depth(
        num_layers, shape, num_classes, layout, _kernel_layout(layout), dtype, **kwargs
    )


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
