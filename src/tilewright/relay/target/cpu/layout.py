"""The layouts that CPUs prefer: the rules of AlterOpLayout for convolutions and dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import const
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.convolution_rules import is_multiplied
from tilewright.relay.target.cpu.blocks import BlockedConvolution, blocks_in_force
from tilewright.relay.target.cpu.low_precision import (
    is_low_precision,
    low_precision_conv2d,
    low_precision_dense,
)
from tilewright.relay.target.cpu.shapes import constant_shape
from tilewright.relay.target.cpu.typical_shapes import typical_result
from tilewright.schedule.cpu.layouts import Conv2DLayouts, conv2d_layouts, dense_block, layouts_of_blocks
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.winograd_model import TILES, Convolution, choose_winograd_tile
from tilewright.schedule.tuning import GraphDecision, decide_in_graph, is_tuned
from tilewright.strategy.cpu import WIDE
from tilewright.support.dtype import DataType
from tilewright.target import Target


def blocks_help(dtype: Any) -> bool:
    """True for the types that have blocked kernels: 32- and 64-bit floats."""
    kind = DataType(dtype)
    return kind.is_float and kind.bits >= 32


@dataclass(frozen=True)
class _Blockable:
    """A conv2d of NCHW that could have its channels in blocks: its weight's shape, and the layouts that suit it."""

    kernel: tuple[int, ...]
    channels: int
    outputs: int
    depthwise: bool
    layouts: Conv2DLayouts


def _is_plain(attrs: Any) -> bool:
    return attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW" and attrs.out_layout in ("", "NCHW")


def _blockable(attrs: Any, tinfos: Sequence[Any]) -> _Blockable | None:
    data, kernel = constant_shape(tinfos[0].shape[1:2]), constant_shape(tinfos[1].shape)
    if not _is_plain(attrs) or data is None or kernel is None or is_low_precision(attrs, tinfos):
        return None
    if not blocks_help(tinfos[0].dtype):
        return None
    channels = data[0]
    # Several outputs for each channel, as (channels, multiplier, ...) or as groups of one channel.
    depthwise = is_multiplied(attrs.groups, channels, kernel[0]) or (
        attrs.groups > 1 and attrs.groups == channels and kernel[1] == 1
    )
    outputs = kernel[0] * kernel[1] if depthwise else kernel[0]
    layouts = conv2d_layouts(channels, outputs, attrs.groups, str(tinfos[0].dtype))
    return None if layouts is None else _Blockable(kernel, channels, outputs, depthwise, layouts)


def conv2d_in_blocks(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
) -> RelayExpr | None:
    """An NCHW conv2d with blocked channels; None to leave it as it is."""
    if _is_plain(attrs) and is_low_precision(attrs, tinfos):
        data, weights = constant_shape(tinfos[0].shape[1:]), constant_shape(tinfos[1].shape)
        if data is None or weights is None:
            return None
        return low_precision_conv2d(attrs, inputs, data, weights, tinfos)
    found = _blockable(attrs, tinfos)
    if found is None:
        return None
    kernel, outputs, depthwise, layouts = found.kernel, found.outputs, found.depthwise, found.layouts
    weight = inputs[1]
    if depthwise and kernel[1] != 1:
        weight = call("reshape", weight, newshape=(outputs, 1, *kernel[2:]))
    blocks = blocks_in_force()
    if blocks is not None:
        layouts = layouts_of_blocks(*blocks, depthwise)
    if attrs.groups == 1:
        tile = _winograd_tile(attrs, tinfos, out_type, layouts.oc_bn)
        if tile is not None:
            return _winograd(attrs, inputs, kernel, layouts, tile)
    name = "nn.contrib_depthwise_conv2d_NCHWc" if depthwise else "nn.contrib_conv2d_NCHWc"
    return call(
        name,
        inputs[0],
        weight,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=attrs.groups,
        channels=outputs,
        kernel_size=kernel[2:],
        data_layout=layouts.data_layout,
        kernel_layout=layouts.kernel_layout,
        out_layout=layouts.out_layout,
        out_dtype=attrs.out_dtype,
    )


DIRECT_EFFICIENCY: Final = 0.75
"""The share of the peak rate of multiply-adds that direct convolutions reach."""
PLAIN_INPUT: Final = 1.08
WIDE_BLOCK: Final = 1.05
"""The measured slowdown of a convolution with an NCHW input, and with a block of more outputs than a tile has
columns."""
WIDE_DEPTHWISE: Final = 1.4
WIDE_PADDED_DEPTHWISE: Final = 2.6
"""The same for a depthwise convolution: its weights no longer stay in L1, nor a padded block of its input in L2."""


def conv2d_block_costs(attrs: Any, tinfos: Sequence[Any], out_type: Any) -> BlockedConvolution | None:
    """The cost of an NCHW conv2d by block size. A Winograd convolution is restricted to the blocks that its tiles
    need."""
    found = _blockable(attrs, tinfos)
    shape = typical_result(out_type)
    if found is None or shape is None:
        return None
    cpu = current_cpu()
    lanes = lanes_of(cpu, str(tinfos[0].dtype))
    preferred = found.layouts.ic_bn, found.layouts.oc_bn
    fixed = attrs.groups > 1 and (not found.depthwise or found.outputs != found.channels)
    if attrs.groups == 1:
        fixed = _winograd_tile(attrs, tinfos, out_type, preferred[1]) is not None
    products = prod(shape) * prod(found.kernel[2:]) * (1 if found.depthwise else found.kernel[1])
    least = products / (lanes * max(cpu.fma_units, 1) * DIRECT_EFFICIENCY)

    def cycles(inputs: int, outputs: int) -> float:
        if (inputs, outputs) == preferred:
            return least
        if fixed or found.channels % inputs or found.outputs % outputs:
            return inf
        if outputs != preferred[1] and outputs % lanes:
            return inf
        if found.depthwise:
            slower = WIDE_DEPTHWISE if shape[3] >= WIDE else WIDE_PADDED_DEPTHWISE
            return least * slower if inputs == outputs else inf
        return least * (PLAIN_INPUT if inputs == 1 else 1.0) * (WIDE_BLOCK if outputs > 4 * lanes else 1.0)

    return BlockedConvolution(preferred, cycles)


def _winograd_tile(attrs: Any, tinfos: Sequence[Any], out_type: Any, lanes: int) -> int | None:
    """The Winograd tile; None for a convolution that does not qualify or would not be faster."""
    kernel = constant_shape(tinfos[1].shape)
    if kernel is None or kernel[2:] != (3, 3):
        return None
    if tuple(attrs.strides) != (1, 1) or tuple(attrs.dilation) != (1, 1) or str(out_type.dtype) != "float32":
        return None
    shape = typical_result(out_type)
    if shape is None:
        return None
    batch, outputs, height, width = shape
    convolution = Convolution(batch, kernel[1], outputs, height, width, lanes)
    largest = PassContext.current().get("relay.winograd.largest_tile")
    constructed = choose_winograd_tile(current_cpu(), convolution, largest)
    if not is_tuned():
        return constructed
    tiles = tuple(tile for tile in TILES if tile <= largest)
    chosen = _tuned("algorithm", constructed or DIRECT, (DIRECT, *tiles), "nn.conv2d", attrs, tinfos)
    return chosen or None


DIRECT: Final = 0
"""The algorithm of a convolution that does not use Winograd; otherwise it is the size of the tile."""


def _tuned(
    name: str, constructed: int, candidates: tuple[int, ...], operator: str, attrs: Any, types: Sequence[Any]
) -> int:
    """What search found for a choice of a call; else what the model says."""
    target = Target.current() or Target("llvm")
    chosen: int = decide_in_graph(
        GraphDecision(operator, attrs, types, target, name, constructed, (constructed, *candidates))
    )
    return chosen


def _winograd(
    attrs: Any, inputs: Sequence[RelayExpr], kernel: tuple[int, ...], layouts: Conv2DLayouts, tile: int
) -> RelayExpr:
    """The Winograd convolution, with the weight transformed and packed."""
    outputs, channels, block, size = kernel[0], kernel[1], layouts.oc_bn, tile + 2
    weight = call("nn.contrib_conv2d_winograd_weight_transform", inputs[1], tile_size=tile)
    weight = call("reshape", weight, newshape=(size, size, outputs // block, block, channels))
    weight = call("transpose", weight, axes=(0, 1, 2, 4, 3))
    return call(
        "nn.contrib_conv2d_winograd_without_weight_transform",
        inputs[0],
        weight,
        tile_size=tile,
        padding=attrs.padding,
        channels=outputs,
        kernel_size=(3, 3),
        data_layout=layouts.data_layout,
        out_layout=layouts.out_layout,
        out_dtype=attrs.out_dtype,
    )


def dense_in_blocks(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
) -> RelayExpr | None:
    """A dense layer with its weight in blocks of units; None to leave it as it is.

    A single row reads every weight once, which is fastest in memory order. If the block does not divide the units, the
    last one is padded.
    """
    weight = constant_shape(tinfos[1].shape)
    if weight is None:
        return None
    if is_low_precision(attrs, tinfos):
        return low_precision_dense(attrs, inputs, weight, tinfos) if len(tinfos[0].shape) == 2 else None
    if not blocks_help(tinfos[0].dtype):
        return None
    rows = constant_shape(tinfos[0].shape[:-1])
    units, depth = weight
    count = None if rows is None else prod(rows)
    block = 0 if count == 1 else _whole_block(units, dense_block(units, count, depth, str(tinfos[0].dtype)))
    if is_tuned():
        lanes = lanes_of(current_cpu(), str(tinfos[0].dtype))
        widths = tuple(vectors * lanes for vectors in range(1, 5) if vectors * lanes <= max(units, lanes))
        block = _tuned("block", block, (0, *widths), "nn.dense", attrs, tinfos)
    if block == 0:
        return None
    missing = -units % block
    packed = inputs[1]
    if missing:
        packed = call("nn.pad", packed, const(0.0, str(tinfos[1].dtype)), pad_width=((0, missing), (0, 0)))
    return call(
        "nn.contrib_dense_pack",
        inputs[0],
        packed,
        units=units,
        out_dtype=attrs.out_dtype,
        weight_layout=f"NC{block}n",
    )


def _whole_block(units: int, block: int) -> int:
    """A block of at least half the size, in whole vectors, that divides the units; else the block itself."""
    lanes = lanes_of(current_cpu(), "float32")
    fitting = [size for size in range(block, block // 2, -1) if units % size == 0 and size % lanes == 0]
    return units if units <= lanes else next(iter(fitting), block)
