"""TVM's modules with computed names: from the path of a module to the function that returns them.

A function is written "package.module:function". It is called with the module's path (without the package's name) when
the module is first imported, and returns a dictionary of its attributes.
"""

from __future__ import annotations

from typing import Final

_SCHEDULES: Final = "tilewright.compat.named_schedules:attributes"
_STRATEGIES: Final = "tilewright.compat.named_strategies:attributes"

_CUDA_FILES: Final = (
    *("batch_matmul", "batch_matmul_tensorcore", "conv1d", "conv1d_transpose_ncw", "conv2d", "conv2d_hwcn"),
    *("conv2d_hwnc_tensorcore", "conv2d_int8", "conv2d_nhwc_tensorcore", "conv2d_nhwc_winograd"),
    *("conv2d_transpose_nchw", "conv2d_winograd", "conv3d", "conv3d_ndhwc_tensorcore"),
    *("conv3d_transpose_ncdhw", "conv3d_winograd", "correlation", "deformable_conv2d", "dense"),
    *("dense_tensorcore", "depthwise_conv2d", "group_conv2d_nchw", "injective", "nms", "nn", "pooling"),
    *("reduction", "scan", "sort", "sparse", "vision"),
)
"""The files of ``topi.cuda`` that programs import from. Each has all names of the package."""

_ARM_FILES: Final = (
    *("bitserial_conv2d", "bitserial_dense", "conv2d", "conv2d_gemm", "conv2d_int8", "conv2d_transpose"),
    *("depthwise_conv2d", "group_conv2d", "injective"),
)
"""The files of ``topi.arm_cpu``, in the same way."""

PROVIDERS: Final[dict[str, str]] = {
    "relay.op.op_attrs": "tilewright.compat.op_attrs:attribute_classes",
    "relay.op.strategy": _STRATEGIES,
    "relay.op.strategy.generic": _STRATEGIES,
    "relay.op.strategy.x86": _STRATEGIES,
    "topi.arm_cpu": _SCHEDULES,
    **{f"topi.arm_cpu.{name}": _SCHEDULES for name in _ARM_FILES},
    "topi.cuda": _SCHEDULES,
    **{f"topi.cuda.{name}": _SCHEDULES for name in _CUDA_FILES},
    "topi.generic": _SCHEDULES,
    "topi.generic.default": _SCHEDULES,
    "topi.generic.injective": _SCHEDULES,
    "topi.generic.nn": _SCHEDULES,
    "topi.generic.others": _SCHEDULES,
    "topi.x86": _SCHEDULES,
}
