"""Pooling over windows and to a given size."""

from __future__ import annotations

from typing import Any, Final

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.convolution import DATA_LAYOUTS
from tilewright.relay.frontend.torch.registry import converter

_MAXIMUM: Final = {1: relay.nn.max_pool1d, 2: relay.nn.max_pool2d, 3: relay.nn.max_pool3d}
_AVERAGE: Final = {1: relay.nn.avg_pool1d, 2: relay.nn.avg_pool2d, 3: relay.nn.avg_pool3d}
_ADAPTIVE_AVERAGE: Final = {
    1: relay.nn.adaptive_avg_pool1d,
    2: relay.nn.adaptive_avg_pool2d,
    3: relay.nn.adaptive_avg_pool3d,
}
_ADAPTIVE_MAXIMUM: Final = {
    1: relay.nn.adaptive_max_pool1d,
    2: relay.nn.adaptive_max_pool2d,
    3: relay.nn.adaptive_max_pool3d,
}


def _axes(node: TorchNode) -> int:
    """Over how many axes: the digit in the operator's name."""
    return int(node.op_type.partition("pool")[2][0])


def _batched(node: TorchNode, data: Expr, rank: int) -> tuple[Expr, bool]:
    """Data with a batch, and whether it was added."""
    single = node.rank(data) == rank + 1
    return (relay.expand_dims(data, 0) if single else data), single


def _unbatched(data: Expr, single: bool) -> Expr:
    return relay.squeeze(data, axis=[0]) if single else data


@converter("aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d")
def max_pool(
    node: TorchNode,
    input: Expr,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Expr:
    """The greatest element of each window."""
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    kernel = node.spread(kernel_size, rank, "kernel_size")
    made = _MAXIMUM[rank](
        data,
        pool_size=kernel,
        strides=node.spread(stride, rank, "stride") if stride else kernel,
        padding=node.spread(padding, rank, "padding"),
        dilation=node.spread(dilation, rank, "dilation"),
        layout=DATA_LAYOUTS[rank],
        ceil_mode=bool(ceil_mode),
    )
    return _unbatched(made, single)


@converter("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d")
def avg_pool(
    node: TorchNode,
    input: Expr,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:
    """The mean of each window, or its sum by a divisor."""
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    kernel = node.spread(kernel_size, rank, "kernel_size")
    made = _AVERAGE[rank](
        data,
        pool_size=kernel,
        strides=node.spread(stride, rank, "stride") if stride else kernel,
        padding=node.spread(padding, rank, "padding"),
        layout=DATA_LAYOUTS[rank],
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
    )
    return _unbatched(made, single)


@converter(
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
)
def adaptive_avg_pool(node: TorchNode, input: Expr, output_size: Any) -> Expr:
    """Means of as many windows as the result has elements."""
    return _adapted(node, _ADAPTIVE_AVERAGE, input, output_size)


def _adapted(node: TorchNode, operators: Any, input: Expr, output_size: Any) -> Expr:
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    sizes = node.spread(output_size, rank, "output_size")
    return _unbatched(operators[rank](data, output_size=sizes, layout=DATA_LAYOUTS[rank]), single)
