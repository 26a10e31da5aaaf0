"""Convolutions and embeddings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter

_CONVOLUTIONS: Final[dict[int, Any]] = {2: relay.nn.conv2d, 3: relay.nn.conv3d}
_TRANSPOSED: Final[dict[int, Any]] = {2: relay.nn.conv2d_transpose, 3: relay.nn.conv3d_transpose}
_SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def channels_last(node: PaddleNode) -> bool:
    """True if the channels are the last axis of the data."""
    stated = node.text("data_format", node.text("data_layout", "NCHW"))
    return stated.endswith("C")


def window_padding(
    node: PaddleNode, sizes: tuple[int | None, ...], kernel: list[int], strides: list[int]
) -> list[int]:
    """Padding before all axes of space, then after them."""
    rank = len(kernel)
    algorithm = node.text("padding_algorithm", "EXPLICIT")
    if algorithm == "VALID":
        return [0] * (2 * rank)
    if algorithm == "SAME":
        before, after = [], []
        for size, taps, stride in zip(sizes, kernel, strides, strict=True):
            if size is None:
                raise node.fail("padding SAME needs the size of the images: fix it with shape=")
            total = max((-(-size // stride) - 1) * stride + taps - size, 0)
            before.append(total // 2)
            after.append(total - total // 2)
        return before + after
    paddings = node.integers("paddings", [0] * rank)
    if len(paddings) == rank:
        return paddings * 2
    if len(paddings) == 2 * rank:
        return paddings[::2] + paddings[1::2]
    raise node.fail(f"paddings {paddings} do not fit {rank} axes of space")


def _dilations(node: PaddleNode, rank: int) -> list[int]:
    """The distances of the taps; PaddlePaddle ignores them where the padding is SAME."""
    if node.text("padding_algorithm", "EXPLICIT") == "SAME":
        return [1] * rank
    return node.integers("dilations", [1] * rank)


def _space(node: PaddleNode, data: Expr, rank: int) -> tuple[int | None, ...]:
    shape = node.shape(data)
    return shape[1 : 1 + rank] if channels_last(node) else shape[2:]


@converter("conv2d", "depthwise_conv2d", "conv3d", reads="Input Filter Bias", writes="Output")
def convolution(node: PaddleNode, data: Expr, weight: Expr, bias: Expr | None) -> Expr:
    """A convolution; the kernel has the outputs first whatever the order of the data's axes."""
    outputs, _, *kernel = node.static_shape(weight, "the filter")
    rank = len(kernel)
    last = channels_last(node)
    strides, dilations = node.integers("strides"), _dilations(node, rank)
    made = _CONVOLUTIONS[rank](
        data,
        node.permuted(weight, (*range(2, rank + 2), 1, 0)) if last else weight,
        strides=strides,
        padding=window_padding(node, _space(node, data, rank), kernel, strides),
        dilation=dilations,
        groups=node.integer("groups", 1) or 1,
        channels=outputs,
        kernel_size=kernel,
        data_layout=f"N{_SPACE[rank]}C" if last else f"NC{_SPACE[rank]}",
        kernel_layout=f"{_SPACE[rank]}IO" if last else f"OI{_SPACE[rank]}",
    )
    return made if bias is None else relay.nn.bias_add(made, bias, axis=rank + 1 if last else 1)


@converter(
    "conv2d_transpose",
    "depthwise_conv2d_transpose",
    "conv3d_transpose",
    reads="Input Filter OutputSizeTensor Bias",
    writes="Output",
)
def transposed(node: PaddleNode, data: Expr, weight: Expr, size: Expr | None, bias: Expr | None) -> Expr:
    """A transposed convolution, for a size of the result or with what is added after it."""
    _, each, *kernel = node.static_shape(weight, "the filter")
    rank = len(kernel)
    last = channels_last(node)
    if last:
        data = relay.transpose(data, [0, rank + 1, *range(1, rank + 1)])
    strides, dilations = node.integers("strides"), _dilations(node, rank)
    sizes = node.shape(data)[2:]
    padding = window_padding(node, sizes, kernel, strides)
    more = node.integers("output_padding", []) or [0] * rank
    wanted = node.known("output_size", size, default=[])
    if wanted:
        least = [
            (have - 1) * stride - before - after + dilation * (taps - 1) + 1
            for have, stride, before, after, dilation, taps in zip(
                node.static_shape(data)[2:],
                strides,
                padding[:rank],
                padding[rank:],
                dilations,
                kernel,
                strict=True,
            )
        ]
        more = [one - other for one, other in zip(wanted, least, strict=True)]
    groups = node.integer("groups", 1) or 1
    made = _TRANSPOSED[rank](
        data,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilations,
        groups=groups,
        channels=each * groups,
        kernel_size=kernel,
        data_layout=f"NC{_SPACE[rank]}",
        kernel_layout="IOHW" if rank == 2 else "OIDHW",
        output_padding=more,
    )
    if bias is not None:
        made = relay.nn.bias_add(made, bias, axis=1)
    return relay.transpose(made, [0, *range(2, rank + 2), 1]) if last else made


@converter("lookup_table_v2", "lookup_table", "embedding", reads="Ids W")
def embedding(node: PaddleNode, indices: Expr, table: Expr) -> Expr:
    """Rows of a table; the row of the padding index is zero."""
    if node.op_type == "lookup_table":
        indices = relay.squeeze(indices, axis=[node.rank(indices) - 1])
    made = relay.take(table, relay.cast(indices, "int64"), axis=0, mode="clip")
    padding = node.integer("padding_idx", -1)
    if padding == -1:
        return made
    rows = node.static_shape(table)[0]
    kept = np.ones((rows, 1), "float32")
    kept[padding] = 0
    mask = relay.take(node.constant(kept, table), relay.cast(indices, "int64"), axis=0, mode="clip")
    return relay.multiply(made, mask)


@converter("deformable_conv", reads="Input Offset Filter Mask", writes="Output")
def deformable(node: PaddleNode, data: Expr, offset: Expr, weight: Expr, mask: Expr | None) -> Expr:
    """A convolution whose taps are moved; without weights of the taps."""
    if mask is not None:
        raise node.fail("a mask (version 2 of deformable convolutions) is not supported")
    outputs, _, *kernel = node.static_shape(weight, "the filter")
    return relay.nn.deformable_conv2d(
        data,
        offset,
        weight,
        strides=node.integers("strides"),
        padding=node.integers("paddings"),
        dilation=node.integers("dilations"),
        deformable_groups=node.integer("deformable_groups", 1),
        groups=node.integer("groups", 1),
        channels=outputs,
        kernel_size=kernel,
    )
