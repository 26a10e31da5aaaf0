"""The computations of ``topi.x86``: those of ``topi.nn``, with block sizes from the machine model and chosen as in a
build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.relay.target import rewrites_for
from tilewright.schedule.cpu.layouts import (
    Conv2DLayouts,
    Conv2DWorkload,
    channel_block,
    choose_conv2d_blocking,
    conv2d_layouts,
    dense_block,
)
from tilewright.schedule.cpu.low_precision import uses_packed_lanes
from tilewright.schedule.cpu.winograd_model import Convolution, choose_winograd_tile
from tilewright.strategy import cpu
from tilewright.target import Target
from tilewright.te import Tensor
from tilewright.topi import nn
from tilewright.topi.nn.conv2d_transpose_NCHWc import AxisPhases, axis_phases
from tilewright.topi.scatter import scatter_nd
from tilewright.topi.vision.rcnn.roi_align import roi_align_nchw


def conv2d_nchw(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The convolution of NCHW with OIHW, computed with the channels in blocks where these are known."""
    return group_conv2d_nchw(data, kernel, strides, padding, dilation, 1, out_dtype)


def group_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of NCHW with OIHW in groups, computed with the channels in blocks where these are known."""
    blocks = cpu.conv2d_blocks(data, kernel, groups)
    if not isinstance(blocks, str):
        return nn.conv2d_nchw_packed(data, kernel, strides, padding, dilation, out_dtype, blocks)
    if groups == 1:
        return nn.conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
    return nn.group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)


def conv2d_NCHWc_int8(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str = "int32",
    n_elems: int = 4,
) -> Tensor:
    """The convolution of int8 or bfloat16 with channels in blocks, in packed lanes if the target multiplies those."""
    packed_lanes = uses_packed_lanes(data.dtype, kernel.dtype, out_dtype)
    compute = nn.conv2d_NCHWc_packed_lanes if packed_lanes else nn.conv2d_NCHWc_int8
    return compute(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype, n_elems)


def depthwise_conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> Tensor:
    """The depthwise convolution with channels in blocks; a wide image is read in place."""
    window = (strides, padding, dilation)
    if cpu.unpadded_refused(data, kernel, *window, out_dtype) is None:
        return nn.depthwise_conv2d_NCHWc_unpadded(data, kernel, *window, out_dtype)
    return nn.depthwise_conv2d_NCHWc(data, kernel, *window, layout, out_layout, out_dtype)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """``data @ weight.T + bias``, the weights packed on the way where the rows are many enough to repay it."""
    if cpu.dense_packed_lanes_refused(data, weight, out_dtype) is None:
        return nn.dense_packed_lanes(data, weight, bias, out_dtype)
    if cpu.dense_packed_refused(data, weight) is None:
        return nn.dense_packed(data, weight, bias, out_dtype, cpu.units_per_block(data, weight))
    return nn.dense(data, weight, bias, out_dtype)


def dense_pack(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    units: Any = None,
) -> Tensor:
    """``dense`` with weights in blocks of units. Weights of three or four dimensions are packed already; the last block
    may then hold fewer than a block's units."""
    if len(weight.shape) == 4 and uses_packed_lanes(data.dtype, weight.dtype, out_dtype):
        return nn.dense_pack_packed_lanes(data, weight, bias, out_dtype, units)
    if len(weight.shape) in (3, 4):
        return nn.dense_pack(data, weight, bias, out_dtype, units)
    return nn.dense_packed(data, weight, bias, out_dtype, cpu.units_per_block(data, weight))


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """``A[b] @ B[b]`` for each ``b``, either transposed before. A transposed ``B`` is copied to its plain
    layout first if many rows read it."""
    flags = transpose_a, transpose_b
    if uses_packed_lanes(tensor_a.dtype, tensor_b.dtype, out_dtype):
        shape = nn.batch_matmul(tensor_a, tensor_b, oshape, out_dtype, *flags).shape
        return nn.batch_matmul_packed_lanes(tensor_a, tensor_b, shape, out_dtype, *flags)
    if cpu.batch_matmul_transposed_refused(tensor_a, *flags) is None:
        return nn.batch_matmul_transposed(tensor_a, tensor_b, oshape, out_dtype, transpose_a)
    return nn.batch_matmul(tensor_a, tensor_b, oshape, out_dtype, *flags)


def _alter_layout_of(operator: str) -> Callable[..., RelayExpr | None]:
    """What AlterOpLayout makes of a call of an operator on a CPU."""

    def alter(
        attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
    ) -> RelayExpr | None:
        return rewrites_for(Target.current() or Target("llvm")).alter_layout[operator](
            attrs, inputs, tinfos, out_type
        )

    return alter


COMPUTATIONS: Final[dict[str, Any]] = {
    "_alter_conv2d_layout": _alter_layout_of("nn.conv2d"),
    "_alter_dense_layout": _alter_layout_of("nn.dense"),
    "AxisPhases": AxisPhases,
    "Conv2DLayouts": Conv2DLayouts,
    "Conv2DWorkload": Conv2DWorkload,
    "Convolution": Convolution,
    "axis_phases": axis_phases,
    "batch_matmul": batch_matmul,
    "bitserial_conv2d_nchw": nn.bitserial_conv2d_nchw,
    "bitserial_conv2d_nhwc": nn.bitserial_conv2d_nhwc,
    "bitserial_dense": nn.bitserial_dense,
    "channel_block": channel_block,
    "choose_conv2d_blocking": choose_conv2d_blocking,
    "choose_winograd_tile": choose_winograd_tile,
    "conv2d_NCHWc": nn.conv2d_NCHWc,
    "conv2d_NCHWc_int8": conv2d_NCHWc_int8,
    "conv2d_layouts": conv2d_layouts,
    "conv2d_nchw": conv2d_nchw,
    "conv2d_nhwc": nn.conv2d_nhwc,
    "conv2d_transpose_NCHWc": nn.conv2d_transpose_NCHWc,
    "conv2d_transpose_nchw": nn.conv2d_transpose_nchw,
    "conv2d_winograd_NCHWc": nn.conv2d_winograd_NCHWc,
    "conv3d_ncdhw": nn.conv3d_ncdhw,
    "conv3d_ndhwc": nn.conv3d_ndhwc,
    "conv3d_transpose_ncdhw": nn.conv3d_transpose_ncdhw,
    "dense": dense,
    "dense_block": dense_block,
    "dense_nopack": nn.dense,
    "dense_pack": dense_pack,
    "depthwise_conv2d_NCHWc": depthwise_conv2d_NCHWc,
    "depthwise_conv2d_nchw": nn.depthwise_conv2d_nchw,
    "depthwise_conv2d_nhwc": nn.depthwise_conv2d_nhwc,
    "group_conv2d_nchw": group_conv2d_nchw,
    "roi_align_nchw": roi_align_nchw,
    "scatter_nd": scatter_nd,
}
