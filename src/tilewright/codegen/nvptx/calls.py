"""Intrinsic calls in kernels: those of every target, without the host's, and those that only threads have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tilewright.codegen.llvm.calls import CALLS, Handler, access_pointer, address_of
from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.runtime_calls import RUNTIME_CALLS
from tilewright.codegen.nvptx.assembly import as_kernel
from tilewright.codegen.nvptx.async_copy import ASYNC_COPY_CALLS
from tilewright.codegen.nvptx.barriers import BARRIER_CALLS
from tilewright.codegen.nvptx.float8 import FLOAT8_CALLS
from tilewright.codegen.nvptx.fragments import FRAGMENT_CALLS
from tilewright.codegen.nvptx.guarded_loads import if_then_else
from tilewright.codegen.nvptx.tensor_cores import TENSOR_CORE_CALLS
from tilewright.codegen.nvptx.warp_group import WARP_GROUP_CALLS
from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, StringImm
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError

_INT32: Final = DataType("int32")
_GENERIC: Final = "ptr"


def generic(handler: Handler) -> Handler:
    """The address that a handler computes in its own address space, as a pointer that any function takes."""

    def emit(emitter: Emitter, node: Call) -> str:
        kernel = as_kernel(emitter)
        return kernel.in_space(*kernel.pointer(node), _GENERIC)

    return emit


def storage_sync(emitter: Emitter, node: Call) -> str:
    """Wait for the threads that share a memory, and make what they wrote visible."""
    scope = node.args[0].value if isinstance(node.args[0], StringImm) else ""
    if scope in ("shared", "shared.dyn"):
        emitter.call_llvm("llvm.nvvm.barrier.cta.sync.aligned.all", "void", [("i32", "0")])
    elif scope == "warp":
        emitter.call_llvm("llvm.nvvm.bar.warp.sync", "void", [("i32", "-1")])
    else:
        raise CodegenError(
            f"CUDA has no barrier for memory of scope {scope!r}; split the computation into two kernels",
            span=node.span,
        )
    return "0"


def by_words(emitter: Emitter, dtype: DataType, operand: str, make: Callable[[str], str]) -> str:
    """Applies a function of 32-bit words to the bits of a value of any type."""
    function, types = emitter.function, emitter.types
    kind, bits = types.register(dtype), dtype.bits * dtype.lanes
    if dtype.is_bool and dtype.lanes == 1:
        word = make(function.value(f"zext i1 {operand} to i32"))
        return function.value(f"trunc i32 {word} to i1")
    count = -(-bits // 32)
    whole = f"i{bits}"
    number = operand if kind == whole else function.value(f"bitcast {kind} {operand} to {whole}")
    padded = f"i{32 * count}"
    if padded != whole:
        number = function.value(f"zext {whole} {number} to {padded}")
    if count == 1:
        made = make(number)
    else:
        words = function.value(f"bitcast {padded} {number} to <{count} x i32>")
        result = "poison"
        for place in range(count):
            one = make(function.value(f"extractelement <{count} x i32> {words}, i64 {place}"))
            result = function.value(f"insertelement <{count} x i32> {result}, i32 {one}, i64 {place}")
        made = function.value(f"bitcast <{count} x i32> {result} to {padded}")
    if padded != whole:
        made = function.value(f"trunc {padded} {made} to {whole}")
    return made if kind == whole else function.value(f"bitcast {whole} {made} to {kind}")


def shuffle(name: str) -> Handler:
    """``tvm_warp_shuffle*(mask, value, lane, width, warp_size)``."""

    def emit(emitter: Emitter, node: Call) -> str:
        mask, lane = (emitter.visit(node.args[place]) for place in (0, 2))
        width = node.args[3]
        if not isinstance(width, IntImm) or width.value not in (1, 2, 4, 8, 16, 32):
            raise CodegenError(
                f"{node.op.name}: the width of a shuffle is a power of two up to 32, not {width}",
                span=node.span,
            )
        clamp = (32 - width.value) << 8 | (0 if name == "up" else 31)

        def one(word: str) -> str:
            arguments = [("i32", operand) for operand in (mask, word, lane, str(clamp))]
            return emitter.call_llvm(f"llvm.nvvm.shfl.sync.{name}.i32", "i32", arguments)

        return by_words(emitter, node.args[1].dtype, emitter.visit(node.args[1]), one)

    return emit


def active_mask(emitter: Emitter, node: Call) -> str:
    return emitter.call_llvm("llvm.nvvm.activemask", "i32", [])


def prefetch(emitter: Emitter, node: Call) -> str:
    """A line of global memory, into L2."""
    address = as_kernel(emitter).pointer_as(node.args[0], "ptr addrspace(1)")
    emitter.call_llvm("llvm.nvvm.prefetch.global.L2", "void", [("ptr addrspace(1)", address)])
    return "0"


def atomic_add(emitter: Emitter, node: Call) -> str:
    """Adds to the element at an address and gives the value it had before."""
    (space, pointer), value = emitter.pointer(node.args[0]), emitter.visit(node.args[1])
    dtype = node.args[1].dtype
    if dtype.lanes > 1 or dtype.is_bool or (dtype.is_integral and dtype.bits < 32):
        raise CodegenError(f"there is no atomic addition of {dtype}", span=node.span)
    name, kind = "fadd" if dtype.is_float else "add", emitter.types.register(dtype)
    return emitter.function.value(
        f'atomicrmw {name} {space} {pointer}, {kind} {value} syncscope("device") monotonic'
    )


def call_extern(emitter: Emitter, node: Call) -> str:
    """CUDA's math functions by their names in C (``expf``, ``__expf``, ``pow``); others PTX does not define."""
    name = node.args[0].value if isinstance(node.args[0], StringImm) else "?"
    plain = name.removeprefix("__")
    if node.dtype.bits == 32 and f"tir.{plain.removesuffix('f')}" in CALLS:
        plain = plain.removesuffix("f")
    handler = CALLS.get(f"tir.{plain}")
    if (
        handler is None
        or not node.dtype.is_float
        or not all(one.dtype == node.dtype for one in node.args[1:])
    ):
        raise CodegenError(
            f"a kernel calls the function {name!r}, which PTX does not define; use an intrinsic of tir, or a lowering "
            "for the target 'cuda' (tvm.ir.register_intrin_lowering)",
            span=node.span,
        )
    return handler(emitter, operators.call(plain, node.dtype, list(node.args[1:]), node.span))


def _without(names: Sequence[str]) -> dict[str, Handler]:
    return {name: handler for name, handler in CALLS.items() if name not in names}


KERNEL_CALLS: Final[dict[str, Handler]] = {
    **_without([*RUNTIME_CALLS, "tir.tvm_static_handle"]),
    "tir.address_of": generic(address_of),
    "tir.tvm_access_ptr": generic(access_pointer),
    "tir.if_then_else": if_then_else,
    "tir.tvm_storage_sync": storage_sync,
    "tir.tvm_warp_shuffle": shuffle("idx"),
    "tir.tvm_warp_shuffle_up": shuffle("up"),
    "tir.tvm_warp_shuffle_down": shuffle("down"),
    "tir.tvm_warp_activemask": active_mask,
    "tir.prefetch": prefetch,
    "tir.atomic_add": atomic_add,
    "tir.call_extern": call_extern,
    "tir.call_pure_extern": call_extern,
    **FRAGMENT_CALLS,
    **TENSOR_CORE_CALLS,
    **ASYNC_COPY_CALLS,
    **BARRIER_CALLS,
    **WARP_GROUP_CALLS,
    **FLOAT8_CALLS,
}
