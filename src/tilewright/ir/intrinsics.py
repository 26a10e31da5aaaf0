"""The operators that loop programs call, ``tir.<name>``, and the side effects of each.

The table is the whole registration: importing ``tilewright.ir`` makes every name known to ``Op.get``. How an operator
is lowered for a target is an attribute that the code generators add.
"""

from __future__ import annotations

from typing import Final

from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.ptx_intrinsics import PTX_PURE, PTX_READ_STATE, PTX_UPDATE_STATE

MATH_UNARY: Final = (
    *("exp", "exp2", "exp10", "erf", "tanh", "sigmoid", "sqrt", "rsqrt"),
    *("log", "log2", "log10", "log1p"),
    *("tan", "cos", "cosh", "acos", "acosh", "sin", "sinh", "asin", "asinh", "atan", "atanh"),
    *("floor", "ceil", "trunc", "round", "nearbyint", "fabs"),
)
"""Functions of one floating-point number, of its type."""

MATH_BINARY: Final = ("atan2", "pow", "fmod", "hypot", "copysign", "nextafter", "ldexp")
"""Functions of two floating-point numbers; the exponent of ldexp is an integer."""

DOT_PRODUCTS: Final = ("dot_uint8_int8", "dot_int8_int8", "dot_int16", "dot_bfloat16")
"""Sums of the products of the numbers in two words of 32 bits: four integers in an int32, two bfloat16 in a float32."""

_EXPRESSION_ANNOTATION: Final = ("likely",)

_PURE: Final = (
    *MATH_UNARY,
    *MATH_BINARY,
    *("reinterpret", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"),
    *("large_uint_imm", "q_multiply_shift", "address_of", "if_then_else", "fma"),
    *("isnan", "isfinite", "isinf", "isnullptr", "same_address", "popcount", "clz"),
    *("call_pure_extern", "call_llvm_pure_intrin", "call_spirv_pure_glsl450"),
    *("type_annotation", "lookup_param", "format_message"),
    *("vectorhigh", "vectorlow", "vectorcombine"),
    *("pack_word", *DOT_PRODUCTS, "lookup_byte"),
    *PTX_PURE,
)

_READ_STATE: Final = (
    "matrix_unit_ready",
    "tvm_context_id",
    "tvm_struct_get",
    "tvm_thread_context",
    "tvm_warp_activemask",
    *PTX_READ_STATE,
)

_UPDATE_STATE: Final = (
    *("call_extern", "call_llvm_intrin", "prefetch", "atomic_add", "nd_mem_alloc_with_scope"),
    *("tvm_struct_set", "tvm_throw_last_error", "tvm_check_return", "check_tensors"),
    *("tvm_stack_alloca", "tvm_stack_make_shape", "tvm_stack_make_array"),
    *("tvm_call_packed", "tvm_call_cpacked", "tvm_call_trace_packed"),
    *("tvm_call_packed_lowered", "tvm_call_cpacked_lowered", "tvm_call_trace_packed_lowered"),
    *("tvm_thread_allreduce", "tvm_storage_sync", "tvm_global_barrier_kinit"),
    *("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down"),
    *("tvm_load_matrix_sync", "tvm_mma_sync", "tvm_bmma_sync", "tvm_fill_fragment", "tvm_store_matrix_sync"),
    *("matrix_multiply_add", "texture2d_load", "texture2d_store", "mem_copy"),
    *("start_profile_intrinsic", "end_profile_intrinsic"),
    *("TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace"),
    *PTX_UPDATE_STATE,
)

_SPECIAL_ARGUMENT: Final = ("tvm_access_ptr", "tvm_static_handle")

_EMBED_INFORMATION: Final = ("tvm_tuple",)

_CONTROL_JUMP: Final = ("ret",)

_TABLE: Final = {
    CallEffectKind.ExprAnnotation: _EXPRESSION_ANNOTATION,
    CallEffectKind.Pure: _PURE,
    CallEffectKind.ReadState: _READ_STATE,
    CallEffectKind.UpdateState: _UPDATE_STATE,
    CallEffectKind.SpecialCallArg: _SPECIAL_ARGUMENT,
    CallEffectKind.EmbedInfo: _EMBED_INFORMATION,
    CallEffectKind.ControlJump: _CONTROL_JUMP,
}

INPUT_COUNTS: Final = {
    **dict.fromkeys(MATH_UNARY, 1),
    **dict.fromkeys(MATH_BINARY, 2),
    **dict.fromkeys(("likely", "reinterpret", "bitwise_not", "address_of", "isnan", "isfinite", "isinf"), 1),
    **dict.fromkeys(("isnullptr", "popcount", "clz", "ret", "lookup_param", "vectorhigh", "vectorlow"), 1),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"), 2),
    **dict.fromkeys(("large_uint_imm", "vectorcombine", "same_address", *DOT_PRODUCTS), 2),
    **dict.fromkeys(("if_then_else", "fma", "tvm_struct_get"), 3),
    **dict.fromkeys(("q_multiply_shift", "tvm_struct_set", "tvm_call_packed_lowered"), 4),
    "TVMBackendFreeWorkspace": 3,
    **dict.fromkeys(("tvm_access_ptr", "TVMBackendAllocWorkspace"), 5),
}
"""How many arguments a call has, for the operators that take a fixed number."""


def register_intrinsics() -> None:
    """Make every operator of the table known, with its effect and its number of arguments."""
    for effect, names in _TABLE.items():
        for name in names:
            op = Op.register(f"tir.{name}")
            if not op.has_attr("TCallEffectKind"):
                op.set_attr("TCallEffectKind", effect)
            op.set_num_inputs(INPUT_COUNTS.get(name, -1))


register_intrinsics()
