"""Convolutions as TVM's templates describe them, and the configurations that they fall back to."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.autotvm.task.option_space import OtherOptionEntity
from tilewright.autotvm.task.split_space import SplitEntity
from tilewright.support.errors import ExpressionError
from tilewright.target import Target
from tilewright.target.cpu import describe_cpu
from tilewright.te import Tensor, placeholder
from tilewright.topi.nn.utils import get_pad_tuple, per_axis
from tilewright.topi.utils import get_const_tuple

_MOST_REGISTERS = 31
"""TVM's limit of the outputs that are kept in registers."""


class Workload(NamedTuple):
    """The sizes of a convolution."""

    in_dtype: str
    out_dtype: str
    height: int
    width: int
    in_filter: int
    groups: int
    out_filter: int
    kernel_h: int
    kernel_w: int
    padt: int
    padl: int
    padb: int
    padr: int
    dilation_h: int
    dilation_w: int
    stride_h: int
    stride_w: int

    @property
    def out_height(self) -> int:
        """The height of the result."""
        reach = (self.kernel_h - 1) * self.dilation_h + 1
        return (self.height + self.padt + self.padb - reach) // self.stride_h + 1

    @property
    def out_width(self) -> int:
        """The width of the result."""
        reach = (self.kernel_w - 1) * self.dilation_w + 1
        return (self.width + self.padl + self.padr - reach) // self.stride_w + 1


def get_workload(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    data_layout: str = "NCHW",
) -> Workload:
    """The sizes of a convolution of constant shapes: NCHW with OIHW, NHWC with HWIO or HWCN with HWIO."""
    axes, weights = get_const_tuple(data.shape), get_const_tuple(kernel.shape)
    if data_layout not in ("NCHW", "NHWC", "HWCN"):
        raise ExpressionError(
            f"convolutions of the layout {data_layout!r} have no workload: NCHW, NHWC or HWCN"
        )
    sizes = dict(zip(data_layout, axes, strict=True))
    named = dict(zip("OIHW" if data_layout == "NCHW" else "HWIO", weights, strict=True))
    top, left, bottom, right = get_pad_tuple(padding, (named["H"], named["W"]))
    return Workload(
        str(data.dtype),
        str(out_dtype),
        sizes["H"],
        sizes["W"],
        sizes["C"],
        sizes["C"] // named["I"],
        named["O"],
        named["H"],
        named["W"],
        top,
        left,
        bottom,
        right,
        *per_axis(dilation, 2, "dilation"),
        *per_axis(stride, 2, "stride"),
    )


def get_depthwise_workload(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    data_layout: str = "NCHW",
) -> Workload:
    """The sizes of a depthwise convolution of constant shapes: NCHW with channel, multiplier, H, W or NHWC with H, W,
    channel, multiplier."""
    weights = get_const_tuple(kernel.shape)
    channel, multiplier, height, width = (
        weights if data_layout == "NCHW" else (weights[2], weights[3], weights[0], weights[1])
    )
    shape = (channel * multiplier, 1, height, width)
    if data_layout != "NCHW":
        shape = (height, width, 1, channel * multiplier)
    return get_workload(
        data, placeholder(shape, dtype=kernel.dtype), stride, padding, dilation, out_dtype, data_layout
    )


def fallback_schedule(cfg: Any, wkl: Workload) -> None:
    """Sets the tiles of a convolution of x86: channels by vector where they divide, columns by the registers, and two
    rows together where the height is even."""
    lanes = describe_cpu(Target.current() or Target("llvm")).lanes(32)
    outputs = _largest_divisor(wkl.out_filter, lanes)
    inputs = _largest_divisor(wkl.in_filter, outputs)
    _set_tiles(cfg, wkl, inputs, outputs)
    cfg["tile_oh"] = OtherOptionEntity(_largest_divisor(wkl.out_height, 2))


def fallback_schedule_cpu_common_int8(
    cfg: Any, wkl: Workload, int32_lanes: int, num_int8_elements: int
) -> None:
    """Sets the tiles of a convolution with packed 8-bit lanes: channels by vector, columns by the registers."""
    if wkl.out_filter % int32_lanes != 0:
        raise ExpressionError(f"{wkl.out_filter} channels do not fill vectors of {int32_lanes} lanes")
    _set_tiles(cfg, wkl, _input_block(wkl.in_filter, int32_lanes, num_int8_elements), int32_lanes)


def fallback_schedule_cpu_1x1_int8(cfg: Any, wkl: Workload, int32_lanes: int, num_int8_elements: int) -> None:
    """The same for kernels of one element, which compute two rows together where the height is even."""
    fallback_schedule_cpu_common_int8(cfg, wkl, int32_lanes, num_int8_elements)
    cfg["tile_oh"] = OtherOptionEntity(_largest_divisor(wkl.out_height, 2))


def _set_tiles(cfg: Any, wkl: Workload, inputs: int, outputs: int) -> None:
    columns = _largest_divisor(wkl.out_width, _MOST_REGISTERS)
    cfg["tile_ic"] = SplitEntity([wkl.in_filter // inputs, inputs])
    cfg["tile_oc"] = SplitEntity([wkl.out_filter // outputs, outputs])
    cfg["tile_ow"] = SplitEntity([wkl.out_width // columns, columns])
    cfg["unroll_kw"] = OtherOptionEntity(False)


def _largest_divisor(number: int, most: int) -> int:
    return max(size for size in range(1, most + 1) if number % size == 0)


def _input_block(channels: int, lanes: int, together: int) -> int:
    """The largest number of channels that divides them, fits a vector and is multiplied in groups."""
    for size in range(lanes, 0, -together):
        if channels % size == 0:
            return size
    raise ExpressionError(f"{channels} input channels do not divide into groups of {together}")
