"""Kernels as LLVM IR: what differs from the CPU.

* Pointers have address spaces: 1 for global memory, 3 for shared memory, 0 for what a thread has to itself. A pointer
  that is passed to a function is generic.
* Thread and block axes are special registers, with their ranges, so that LLVM knows that no index is negative.
* An index is computed in 32 bits where its bounds allow it (``bounds``), and in 64 elsewhere.
* A failed assertion stops the kernel (``trap``), which the driver reports at the next call.
* Loops of kind parallel run serially: the schedule has bound what runs in parallel to threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from tilewright.codegen.llvm.calls import Handler, access_pointer, address_of
from tilewright.codegen.llvm.emitter import NON_INDEX_BITS, FunctionContext, ModuleContext
from tilewright.codegen.llvm.runtime_calls import likely_metadata
from tilewright.codegen.llvm.statements import StatementEmitter
from tilewright.codegen.llvm.writer import FunctionText
from tilewright.codegen.nvptx.bounds import IndexBounds
from tilewright.codegen.nvptx.calls import KERNEL_CALLS
from tilewright.codegen.nvptx.fragments import Fragments
from tilewright.codegen.nvptx.machine import GPUMachine
from tilewright.codegen.nvptx.math import half_name
from tilewright.ir.expr import (
    Add,
    BinaryOpExpr,
    Call,
    Div,
    IntImm,
    IterVar,
    Load,
    Mod,
    Mul,
    PrimExpr,
    Sub,
    Var,
)
from tilewright.ir.op import Op
from tilewright.support.errors import CodegenError
from tilewright.tir.ptx import TENSOR_MAP
from tilewright.tir.stmt import Allocate, AssertStmt, AttrStmt, For, LetStmt

GLOBAL: Final = "ptr addrspace(1)"
SHARED: Final = "ptr addrspace(3)"
GENERIC: Final = "ptr"

_REGISTERS: Final = {
    f"{kind}.{letter}": f"llvm.nvvm.read.ptx.sreg.{register}.{letter}"
    for kind, register in (("blockIdx", "ctaid"), ("threadIdx", "tid"))
    for letter in "xyz"
}
_LARGEST_EXTENTS: Final = {
    "blockIdx.x": (1 << 31) - 1,
    "blockIdx.y": 65535,
    "blockIdx.z": 65535,
    "threadIdx.x": 1024,
    "threadIdx.y": 1024,
    "threadIdx.z": 64,
}
_LOCAL_ALIGNMENT: Final = 16
_SHARED_ALIGNMENT: Final = 128
_DYNAMIC_ALIGNMENT: Final = 1024
"""What the widest swizzle of the bulk tensor copies wants; dynamic shared memory starts there anyway."""
_INSTRUCTIONS: Final[dict[type, str]] = {Add: "add nsw", Sub: "sub nsw", Mul: "mul nsw"}


class KernelEmitter(StatementEmitter):
    """Emits one kernel."""

    calls: ClassVar[Mapping[str, Handler]] = KERNEL_CALLS

    def __init__(self, module: ModuleContext, context: FunctionContext, function: FunctionText) -> None:
        super().__init__(module, context, function)
        assert isinstance(module.machine, GPUMachine)
        self.gpu = module.machine.gpu
        self.bounds = IndexBounds()
        self.fragments = Fragments()
        self.in_parallel = True
        self._private: set[Var] = set()
        self.tensor_maps: dict[Var, str] = {}

    # Pointers

    def pointer_type(self, var: Var) -> str:
        if var in self._private:
            return GENERIC
        scope = var.storage_scope
        if scope.startswith("shared"):
            return SHARED
        return GLOBAL if scope in ("", "global") else GENERIC

    def pointer(self, expr: PrimExpr) -> tuple[str, str]:
        if isinstance(expr, Var):
            return self.pointer_type(expr), self.variable(expr)
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.op.name == "tir.address_of":
                operand = address_of(self, expr)
                assert isinstance(expr.args[0], Load)
                return self.pointer_type(expr.args[0].buffer_var), operand
            if expr.op.name == "tir.tvm_access_ptr":
                return self.pointer(expr.args[1])[0], access_pointer(self, expr)
        return GENERIC, self.visit(expr)

    def pointer_as(self, expr: PrimExpr, wanted: str) -> str:
        """An address, in an address space that it is known to be in."""
        kind, operand = self.pointer(expr)
        return self.in_space(kind, operand, wanted)

    def in_space(self, kind: str, operand: str, wanted: str) -> str:
        """A pointer, cast to another address space."""
        if kind == wanted:
            return operand
        if GENERIC not in (kind, wanted):
            operand = self.function.value(f"addrspacecast {kind} {operand} to {GENERIC}")
            kind = GENERIC
        return self.function.value(f"addrspacecast {kind} {operand} to {wanted}")

    def visit_var(self, node: Var) -> str:
        if not node.dtype.is_handle:
            return self.variable(node)
        return self.in_space(*self.pointer(node), GENERIC)

    # Indices

    def define(self, var: Var, operand: str) -> None:
        self.variables[var] = operand

    def visit_index(self, expr: PrimExpr) -> str:
        return self.index_as(expr, self.types.index)

    def offset(self, expr: PrimExpr) -> tuple[str, str]:
        kind = "i32" if self.bounds.is_narrow(expr) else "i64"
        return kind, self.index_as(expr, kind)

    def constant_distance(self, index: PrimExpr) -> tuple[PrimExpr, int]:
        # A sum that fits 32 bits may have parts that do not.
        return index, 0

    def comparison_type(self, a: PrimExpr, b: PrimExpr) -> str:
        return "i32" if self.bounds.is_narrow(a) and self.bounds.is_narrow(b) else "i64"

    def index_as(self, expr: PrimExpr, kind: str) -> str:
        if isinstance(expr, IntImm):
            return str(expr.value)
        if kind == "i64" and self.bounds.is_narrow(expr):
            return self._resized(self.index_as(expr, "i32"), "i32", kind, signed=True)
        instruction = _INSTRUCTIONS.get(type(expr))
        if instruction is None or not expr.dtype.is_int or expr.dtype.bits <= NON_INDEX_BITS:
            return self._resized(self.visit(expr), f"i{expr.dtype.bits}", kind, expr.dtype.is_int)
        # One expression may be wanted in both widths.
        key = id(expr) if kind == "i64" else -id(expr)
        known = self.wide_memo.get(key)
        if known is not None:
            return known[1]
        left = self.index_as(expr.a, kind)  # type: ignore[attr-defined]
        right = self.index_as(expr.b, kind)  # type: ignore[attr-defined]
        operand = self.function.value(f"{instruction} {kind} {left}, {right}")
        self.wide_memo[key] = (expr, operand)
        return operand

    def _resized(self, operand: str, kind: str, wanted: str, signed: bool) -> str:
        if kind == wanted:
            return operand
        longer = int(wanted[1:]) > int(kind[1:])
        how = "trunc" if not longer else "sext" if signed else "zext"
        return self.function.value(f"{how} {kind} {operand} to {wanted}")

    def counter_type(self, node: For) -> str:
        last = self.bounds.bound(node.min)[1] + self.bounds.bound(node.extent)[1]
        return "i32" if node.loop_var.dtype.bits <= 32 or last < 1 << 31 else "i64"

    def define_counter(self, loop_var: Var, counter: str, kind: str) -> None:
        self.variables[loop_var] = self._resized(counter, kind, f"i{loop_var.dtype.bits}", signed=True)

    def visit_for(self, node: For) -> None:
        self.bounds.bind_range(node.loop_var, node.min, node.extent)
        super().visit_for(node)

    def visit_let_stmt(self, node: LetStmt) -> None:
        if node.var.dtype.is_handle:
            self.define(node.var, self.pointer_as(node.value, self.pointer_type(node.var)))
            self.statement(node.body)
            return
        if node.var.dtype.is_integral and node.var.dtype.lanes == 1:
            self.bounds.bind_value(node.var, node.value)
        super().visit_let_stmt(node)

    # Arithmetic

    def visit_div(self, node: Div) -> str:
        return self._natural_division(node, "udiv") or super().visit_div(node)

    def visit_mod(self, node: Mod) -> str:
        return self._natural_division(node, "urem") or super().visit_mod(node)

    def _natural_division(self, node: Div | Mod, instruction: str) -> str:
        """Division of a number that is never negative by a positive constant: fewer instructions than signed division,
        in 32 bits where it fits. Empty where the operands are others."""
        divisor = node.b
        if not (node.dtype.is_integral and isinstance(divisor, IntImm) and divisor.value > 0):
            return ""
        if not self.bounds.is_natural(node.a):
            return ""
        own = f"i{node.dtype.bits}"
        kind = "i32" if node.dtype.bits == 64 and self.bounds.is_narrow(node.a) else own
        left = self.index_as(node.a, kind) if kind != own else self.visit(node.a)
        if divisor.value >= 1 << 31 and kind == "i32" and own != "i32":
            return ""
        made = self.function.value(f"{instruction} {kind} {left}, {divisor.value}")
        return self._resized(made, kind, own, signed=False)

    def half_math(self, name: str) -> str:
        return half_name(name)

    def _float_extremum(self, node: BinaryOpExpr, comparison: str, left: str, right: str) -> str:
        """From sm_80 on one instruction, which gives NaN where an operand is. It takes the positive zero as the larger
        one, where other targets give the first of two zeros."""
        if self.gpu.number < 80 or node.dtype.bits > 32:
            return super()._float_extremum(node, comparison, left, right)
        name = "llvm.minimum" if comparison == "lt" else "llvm.maximum"
        kind = self.types.register(node.dtype)
        return self.call_llvm(name, kind, [(kind, left), (kind, right)])

    # Statements

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            self._bind_axis(node.node, node.value)
            self.statement(node.body)
        elif node.attr_key == TENSOR_MAP:
            self.statement(node.body)
        elif node.attr_key == "virtual_thread":
            raise CodegenError(
                "a virtual thread is left in the kernel; run InjectVirtualThread before code is made",
                span=node.span,
            )
        else:
            self.fragments.note(node.attr_key, node.node, node.value)
            super().visit_attr_stmt(node)

    def _bind_axis(self, axis: IterVar, extent: PrimExpr) -> None:
        tag, var = axis.thread_tag, axis.var
        register = _REGISTERS.get(tag)
        if register is None:
            raise CodegenError(f"CUDA has no thread index {tag!r}; it has {', '.join(_REGISTERS)}")
        most = _LARGEST_EXTENTS[tag]
        if isinstance(extent, IntImm):
            if not 1 <= extent.value <= most:
                raise CodegenError(f"{tag} has {extent.value} values, CUDA allows {most}")
            most = extent.value
        self.bounds.bind(var, 0, most - 1)
        if most == 1:
            self.define(var, "0")
            return
        value = self.function.value(f"call range(i32 0, {_wrapped(most)}) i32 @{register}()")
        self.define(var, self._resized(value, "i32", f"i{var.dtype.bits}", signed=False))

    def visit_allocate(self, node: Allocate) -> None:
        scope, var = node.buffer_var.storage_scope, node.buffer_var
        if scope == "shared.dyn":
            self.context.alignments[var] = _DYNAMIC_ALIGNMENT
            self.define(var, self._shared_array(node, None, _DYNAMIC_ALIGNMENT))
            self.statement(node.body)
        elif scope == "shared":
            size = node.constant_size()
            if size is None:
                raise CodegenError(
                    f"the shared buffer {var.name} has no constant size; use the scope shared.dyn",
                    span=node.span,
                )
            total = max(size, 1) * node.dtype.lanes * node.dtype.itemsize
            natural = _SHARED_ALIGNMENT if total >= _SHARED_ALIGNMENT else _LOCAL_ALIGNMENT
            align = max(self.context.alignments.get(var, 0), natural)
            self.context.alignments[var] = align
            self.define(var, self._shared_array(node, total, align))
            self.statement(node.body)
        elif scope.startswith("wmma."):
            self._private.add(var)
            count = self.fragments.allocate(node)
            self.define(var, self.function.alloca(f"[{count} x i32]", _LOCAL_ALIGNMENT))
            self.statement(node.body)
        else:
            self._private.add(var)
            super().visit_allocate(node)

    def _shared_array(self, node: Allocate, size: int | None, align: int) -> str:
        """A variable in shared memory; without a size it is the launch's dynamic shared memory."""
        name = self.module.text.unique(f"{self.context.name}.{node.buffer_var.name}").replace(".", "_")
        how = "external" if size is None else "internal"
        start = "" if size is None else " poison"
        self.module.text.add_global(
            f"@{name} = {how} addrspace(3) global [{size or 0} x i8]{start}, align {align}"
        )
        return f"@{name}"

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        condition = self.visit(node.condition)
        function = self.function
        good, bad = function.new_label("holds"), function.new_label("fails")
        function.branch_if(condition, good, bad, likely_metadata(self))
        function.begin(bad)
        function.effect("call void @llvm.trap()")
        function.effect("unreachable")
        function.begin(good)
        self.statement(node.body)


def _wrapped(most: int) -> int:
    """The end of a range of ``i32``, whose largest number is followed by the smallest."""
    return most if most < 1 << 31 else -(1 << 31)
