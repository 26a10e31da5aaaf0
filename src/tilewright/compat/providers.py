"""TVM's modules with computed names: from the path of a module to the function that returns them.

A function is written "package.module:function". It is called with the module's path (without the package's name) when
the module is first imported, and returns a dictionary of its attributes.
"""

from __future__ import annotations

from typing import Final

_SCHEDULES: Final = "tilewright.compat.named_schedules:attributes"
_STRATEGIES: Final = "tilewright.compat.named_strategies:attributes"
_REGISTERED: Final = "tilewright.compat.registered:attributes"

_CUDA_FILES: Final = (
    *(
        "argwhere",
        "batch_matmul",
        "batch_matmul_tensorcore",
        "conv1d",
        "conv1d_transpose_ncw",
        "conv2d",
        "conv2d_hwcn",
    ),
    *("conv2d_hwnc_tensorcore", "conv2d_int8", "conv2d_nhwc_tensorcore", "conv2d_nhwc_winograd"),
    *("conv2d_transpose_nchw", "conv2d_winograd", "conv3d", "conv3d_ndhwc_tensorcore"),
    *("conv3d_transpose_ncdhw", "conv3d_winograd", "correlation", "deformable_conv2d", "dense"),
    *("dense_tensorcore", "depthwise_conv2d", "group_conv2d_nchw", "injective", "nms", "nn", "pooling"),
    *("reduction", "scan", "scatter", "softmax", "sort", "sparse", "sparse_reshape", "unique", "vision"),
)
"""The files of ``topi.cuda`` that programs import from. Each has all names of the package."""

_ARM_FILES: Final = (
    *("bitserial_conv2d", "bitserial_dense", "conv2d", "conv2d_gemm", "conv2d_int8", "conv2d_transpose"),
    *("depthwise_conv2d", "group_conv2d", "injective"),
)
"""The files of ``topi.arm_cpu``, in the same way."""

_X86_FILES: Final = (
    *("batch_matmul", "binarize_pack", "binary_dense", "bitserial_conv2d", "bitserial_dense", "conv1d"),
    *("conv2d", "conv2d_alter_op", "conv2d_avx_1x1", "conv2d_avx_common", "conv2d_int8", "conv2d_transpose"),
    *(
        "conv3d",
        "conv3d_transpose",
        "dense",
        "dense_alter_op",
        "depthwise_conv2d",
        "group_conv2d",
        "injective",
    ),
    *("nn", "pooling", "reduction", "roi_align", "scatter", "sparse", "utils"),
)
"""The files of ``topi.x86``, in the same way."""

NAMESPACES: Final[dict[str, str]] = {
    "driver._ffi_api": "driver",
    "ir._ffi_analysis_api": "analysis",
    "ir._ffi_instrument_api": "instrument",
    "ir._ffi_transform_api": "transform",
    "parser._ffi_api": "parser",
    "relay._ffi_api": "relay.ir",
    "relay.backend._aot": "relay.aot",
    "relay.backend._interpreter": "relay.backend",
    "relay.backend._vm": "relay._vm",
    "relay.quantize._quantize": "relay._quantize",
    "relay.transform._ffi_api": "relay._transform",
    "rpc._ffi_api": "rpc",
    "runtime._ffi_api": "runtime",
    "runtime._ffi_node_api": "node",
    "target._ffi_api": "target",
    "te._ffi_api": "te",
    "tir._ffi_api": "tir",
    "tir.analysis._ffi_api": "tir.analysis",
    "tir.schedule._ffi_api": "tir.schedule",
    "tir.schedule._ffi_api_schedule": "tir.schedule",
    "tir.transform._ffi_api": "tir.transform",
}
"""The modules, each with the beginning of the names of its functions."""

PROVIDERS: Final[dict[str, str]] = {
    "relay.op.op_attrs": "tilewright.compat.op_attrs:attribute_classes",
    "relay.op.strategy": _STRATEGIES,
    "relay.op.strategy.generic": _STRATEGIES,
    **{f"relay.op.strategy.{name}": _STRATEGIES for name in ("arm_cpu", "cuda", "x86")},
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
    **{f"topi.x86.{name}": _SCHEDULES for name in _X86_FILES},
    **dict.fromkeys(NAMESPACES, _REGISTERED),
}
