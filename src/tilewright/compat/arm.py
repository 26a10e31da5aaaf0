"""The computations of ``topi.arm_cpu``: those of ``topi.nn``, whose schedules follow the registers of the target."""

from __future__ import annotations

from typing import Any, Final

from tilewright.target import Target
from tilewright.target.cpu import describe_cpu
from tilewright.te import Tensor
from tilewright.topi import nn


def is_aarch64_arm() -> bool:
    """True if the current target is a 64-bit ARM processor."""
    target = Target.current(allow_none=True)
    return target is not None and target.kind.name == "llvm" and describe_cpu(target).family == "aarch64"


def compute_conv2d_NHWC_quantized(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str
) -> Tensor:
    """The convolution of NHWC with HWIO, both of 8 bits, summed in the type of the result."""
    return nn.conv2d_nhwc(data, kernel, strides, padding, dilation, out_dtype)


COMPUTATIONS: Final[dict[str, Any]] = {
    "bitserial_conv2d_nhwc": nn.bitserial_conv2d_nhwc,
    "bitserial_dense": nn.bitserial_dense,
    "compute_conv2d_NHWC_quantized_interleaved": compute_conv2d_NHWC_quantized,
    "compute_conv2d_NHWC_quantized_native": compute_conv2d_NHWC_quantized,
    "compute_depthwise_conv2d_nhwc": nn.depthwise_conv2d_nhwc,
    "conv2d_direct_simd": nn.conv2d_nhwc,
    "conv2d_nchw_spatial_pack": nn.conv2d_nchw,
    "conv2d_nchw_winograd": nn.conv2d_winograd_nchw,
    "conv2d_nhwc_spatial_pack": nn.conv2d_nhwc,
    "conv2d_transpose_nchw": nn.conv2d_transpose_nchw,
    "depthwise_conv2d_nchw": nn.depthwise_conv2d_nchw,
    "depthwise_conv2d_nchw_spatial_pack": nn.depthwise_conv2d_nchw,
    "group_conv2d_nchw": nn.group_conv2d_nchw,
    "is_aarch64_arm": is_aarch64_arm,
}
"""What TVM has under ``topi.arm_cpu``, by name."""

SCHEDULES: Final = (
    *("bitserial_conv2d_nhwc", "bitserial_dense", "conv2d_NHWC_quantized_interleaved"),
    *("conv2d_NHWC_quantized_native", "conv2d_direct_simd", "conv2d_nchw_spatial_pack"),
    *("conv2d_nchw_winograd", "conv2d_nhwc_spatial_pack", "conv2d_transpose_nchw", "depthwise_conv2d_nchw"),
    *("depthwise_conv2d_nchw_spatial_pack", "depthwise_conv2d_nhwc", "group_conv2d_nchw", "injective"),
    *("concatenate", "pool", "reduce", "softmax"),
)
"""The names of ``topi.arm_cpu``'s schedules."""
