"""Choosing blocked layouts for CPU kernels: how many channels form a block.

The block size depends only on the number of channels, so that consecutive operators agree on the layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.schedule.cpu.loops import vector_fill
from tilewright.schedule.cpu.machine import current_cpu, lanes_of
from tilewright.schedule.cpu.split_reduction import choose_reduction_split
from tilewright.schedule.cpu.tile_model import TileProblem, choose_tile
from tilewright.target.cpu import CPUDescription, describe_cpu
from tilewright.target.target import TargetLike

WORTH_BLOCKING: Final = 0.4
"""The share of a vector that a block must fill to be worth a layout transform."""


@dataclass(frozen=True)
class Conv2DLayouts:
    """Layouts of a convolution with channels in blocks of ``ic_bn`` (input) and ``oc_bn`` (output)."""

    ic_bn: int
    oc_bn: int
    data_layout: str
    kernel_layout: str
    out_layout: str


@dataclass(frozen=True)
class Conv2DWorkload:
    """The properties of a convolution that its blocks are chosen by."""

    in_channels: int
    out_channels: int
    groups: int = 1
    dtype: str = "float32"

    @property
    def is_depthwise(self) -> bool:
        """True if every input channel is its own group."""
        return self.groups > 1 and self.groups == self.in_channels


def channel_block(channels: int, lanes: int) -> int:
    """The number of channels per block: a full vector, or the divisor that fills vectors best."""
    if channels % lanes == 0:
        return lanes
    divisors = [size for size in range(1, min(channels, 4 * lanes) + 1) if channels % size == 0]
    return max(divisors, key=lambda size: (vector_fill(size, lanes), -size))


def choose_conv2d_blocking(cpu: CPUDescription, workload: Conv2DWorkload) -> tuple[int, int] | None:
    """The blocks of input and output channels; None if vectors of channels would be mostly empty.

    Where vector loads take no offset, a block is of two vectors, if that divides the channels: the weights of a tile
    that is two vectors wide are then read from one place to the next, not from two that each need an address.
    """
    lanes = lanes_of(cpu, workload.dtype)
    pair = 2 * lanes if not (cpu.has_vector_offsets or cpu.groups_registers) else 0

    def block_of(channels: int) -> int:
        return pair if pair and channels % pair == 0 else channel_block(channels, lanes)

    if workload.is_depthwise:
        block = block_of(workload.in_channels)
        multiplier = workload.out_channels // workload.in_channels
        blocks = (block, block if multiplier == 1 else block_of(workload.out_channels))
    else:
        blocks = (
            block_of(workload.in_channels // workload.groups),
            block_of(workload.out_channels // workload.groups),
        )
    return blocks if vector_fill(blocks[1], lanes) >= WORTH_BLOCKING else None


def conv2d_layouts(
    in_channels: int,
    out_channels: int,
    groups: int = 1,
    dtype: str = "float32",
    target: TargetLike | None = None,
) -> Conv2DLayouts | None:
    """The layouts in which a two-dimensional convolution runs best on the target (without one, the current target);
    None if it should stay as it is."""
    cpu = current_cpu() if target is None else describe_cpu(target)
    workload = Conv2DWorkload(in_channels, out_channels, groups, dtype)
    blocks = choose_conv2d_blocking(cpu, workload)
    if blocks is None:
        return None
    return layouts_of_blocks(*blocks, workload.is_depthwise)


def layouts_of_blocks(inputs: int, outputs: int, is_depthwise: bool) -> Conv2DLayouts:
    """The layouts with these blocks of input and output channels."""
    inner = 1 if is_depthwise else inputs
    return Conv2DLayouts(inputs, outputs, f"NCHW{inputs}c", f"OIHW{inner}i{outputs}o", f"NCHW{outputs}c")


def dense_block(
    units: int, rows: int | None, depth: int, dtype: str = "float32", target: TargetLike | None = None
) -> int:
    """The number of units of a dense layer to pack into a block: the width of the register tile."""
    cpu = current_cpu() if target is None else describe_cpu(target)
    lanes = lanes_of(cpu, dtype)
    if units <= lanes:
        return units
    reduction_split = None if rows is None else choose_reduction_split(cpu, rows, units, depth, dtype)
    if reduction_split is not None:
        return reduction_split.columns
    problem = TileProblem((rows, 1), units, 4 * lanes, 1, lanes, depth, True, True)
    return max(choose_tile(cpu, problem).columns, lanes)
