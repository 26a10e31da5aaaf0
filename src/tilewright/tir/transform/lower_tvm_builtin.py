"""Lowers calls into the runtime: packed calls, arrays and shapes on the stack, workspace memory.

* ``tvm_call_packed(name, ...)`` writes its arguments as tagged values to a stack array, and becomes
  ``tvm_call_packed_lowered(name, stack, begin, end)``; the result is in ``stack[end]``.
* ``tvm_stack_make_shape`` and ``tvm_stack_make_array`` fill slots of two more stack arrays.
* An allocation that is large or of unknown size comes from the runtime's workspace pool, and a failure to get it is
  an error of the function; a small constant one stays on the stack.

The stack arrays are made once at the top of the function, as large as any statement needs, and again at the top of
each parallel loop's body, because iterations on different threads must not share them.

Invariant from here on: no packed call, no ``tvm_stack_make_*`` and no ``device_type``/``device_id`` attribute is
left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, Load, PrimExpr, Select, StringImm, Var
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import (
    BYTES_OF_ANY,
    StructField,
    TypeIndex,
    address_of,
    is_null,
    message,
    struct_get,
    struct_set,
)
from tilewright.tir.stmt import (
    NO_OP,
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    While,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator

_CPU = 1
LARGEST_STACK_ALLOCATION = 1024
LARGEST_LOCAL_ALLOCATION = 8192
"""Bytes: a larger buffer comes from the workspace pool. What a schedule puts into the scope "local" is meant for
registers, which only works for stack memory."""

_RUN_ONCE = "TVMBackendRunOnce"
"""TVM's name for what runs the statements of a scope in the first call only."""

_WORKSPACE_CALLS = {
    "tir.TVMBackendAllocWorkspace": "tilewright_workspace_alloc",
    "tir.TVMBackendFreeWorkspace": "tilewright_workspace_free",
}
"""Calls of TVM's runtime that programs write out, and the functions of this one that do the same. They take a device,
then a size or a pointer; what TVM passes beside them is a hint."""

_PACKED_CALLS = ("tir.tvm_call_packed", "tir.tvm_call_trace_packed")


def fits_stack(node: Allocate) -> bool:
    """True for a buffer that stays on the stack of the function that uses it."""
    size = node.constant_size()
    annotation = node.buffer_var.type_annotation
    local = isinstance(annotation, PointerType) and annotation.storage_scope == "local"
    most = LARGEST_LOCAL_ALLOCATION if local else LARGEST_STACK_ALLOCATION
    return size is not None and size * node.dtype.itemsize * node.dtype.lanes <= most


@dataclass
class _Stack:
    """One growing array of slots: how many are in use here, and the most that ever were."""

    kind: str
    var: Var
    used: int = 0
    most: int = 0

    def take(self, count: int) -> int:
        """The first of ``count`` fresh slots."""
        begin = self.used
        self.used += count
        self.most = max(self.most, self.used)
        return begin


@dataclass
class _Scope:
    """The stack arrays of a function or of the body of a parallel loop."""

    shapes: _Stack = field(
        default_factory=lambda: _Stack("shape", Var("stack_shape", PointerType(PrimType("int64"))))
    )
    arrays: _Stack = field(default_factory=lambda: _Stack("array", Var("stack_array", "handle")))
    values: _Stack = field(default_factory=lambda: _Stack("arg_value", Var("stack_value", "handle")))

    def stacks(self) -> tuple[_Stack, _Stack, _Stack]:
        return self.shapes, self.arrays, self.values


class _Lower(ScopedMutator):
    """Rewrites one function. ``before`` holds what must run before the statement that is being rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = _Scope()
        self.before: list[Stmt] = []
        self.device_type: PrimExpr = operators.const(_CPU, "int32")
        self.device_id: PrimExpr = operators.const(0, "int32")

    def with_stacks(self, body: Stmt) -> Stmt:
        """The rewritten body, inside the stack arrays that it needs."""
        outer, self.scope = self.scope, _Scope()
        made = self.visit(body)
        for stack in reversed(self.scope.stacks()):
            if stack.most:
                slots = operators.call("tvm_stack_alloca", "handle", [stack.kind, stack.most])
                made = LetStmt(stack.var, slots, made)
        self.scope = outer
        return made  # type: ignore[no-any-return]

    def visit(self, node: Any) -> Any:
        if id(node) in self._plain or not isinstance(node, Stmt):
            return super().visit(node)
        outer, self.before = self.before, []
        in_use = [stack.used for stack in self.scope.stacks()]
        made = super().visit(node)
        for stack, used in zip(self.scope.stacks(), in_use, strict=True):
            stack.used = used
        if self.before:
            made = stmt_seq(self.before, made)
        self.before = outer
        return made

    def visit_for(self, node: For) -> Stmt:
        if node.kind != ForKind.PARALLEL:
            return node.map_children(self.visit)
        low, extent = self.visit(node.min), self.visit(node.extent)
        return node.replace(min=low, extent=extent, body=self.with_stacks(node.body))

    def visit_while(self, node: While) -> Stmt:
        condition = self.visit(node.condition)
        if self.before:
            raise LoweringError(
                "the condition of a while loop calls a packed function; call it in the loop's body"
            )
        body = self.visit(node.body)
        return (
            node if condition is node.condition and body is node.body else While(condition, body, node.span)
        )

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "coproc_uop_scope":
            return self._once(node)
        if node.attr_key not in ("device_type", "device_id"):
            return node.map_children(self.visit)
        saved = self.device_type, self.device_id
        if node.attr_key == "device_type":
            self.device_type = node.value
        else:
            self.device_id = node.value
        body: Stmt = self.visit(node.body)
        self.device_type, self.device_id = saved
        return body

    def _once(self, node: AttrStmt) -> Stmt:
        """Statements that run the first time only, noted in a word that stays between calls."""
        if not (isinstance(node.value, StringImm) and node.value.value == _RUN_ONCE):
            raise LoweringError(
                f"coproc_uop_scope hands its statements to {node.value}, which no supported target has; "
                f"{_RUN_ONCE} runs them once"
            )
        done = Var("done", PointerType(PrimType("int32")))
        body = stmt_seq(Store(done, 1, 0), self.visit(node.body))
        check = IfThenElse(operators.equal(Load("int32", done, 0), 0), body)
        return LetStmt(done, operators.call("tvm_static_handle", "handle", []), check, node.span)

    def visit_allocate(self, node: Allocate) -> Stmt:
        made: Allocate = node.map_children(self.visit)
        itemsize = made.dtype.itemsize * made.dtype.lanes
        on_host = isinstance(self.device_type, IntImm) and self.device_type.value == _CPU
        if on_host and fits_stack(made):
            return made
        total: PrimExpr = operators.const(itemsize, "uint64")
        for extent in made.extents:
            total = operators.multiply(total, operators.cast("uint64", extent))
        place = [self.device_type, self.device_id]
        pointer = operators.call(
            "call_extern", "handle", ["tilewright_workspace_alloc", *place, operators.as_expr(total)]
        )
        release = operators.call(
            "call_extern", "int32", ["tilewright_workspace_free", *place, made.buffer_var]
        )
        text = message("MemoryError", f"cannot allocate {{0}} bytes for {made.buffer_var.name}", [total])
        body = AssertStmt(operators.logical_not(is_null(made.buffer_var)), text, made.body)
        return LetStmt(made.buffer_var, pointer, stmt_seq(body, Evaluate(release)), node.span)

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        call = node.value
        if isinstance(call, Call) and isinstance(call.op, Op) and call.op.name in _PACKED_CALLS:
            lowered, slot = self._packed_call(call)
            return stmt_seq(Evaluate(lowered, node.span), self._release(slot))
        return node.map_children(self.visit)

    def visit_call(self, node: Call) -> PrimExpr:
        name = node.op.name if isinstance(node.op, Op) else ""
        if name in _PACKED_CALLS:
            return self._packed_result(node)
        if name == "tir.tvm_stack_make_shape":
            return self._make_shape(node)
        if name == "tir.tvm_stack_make_array":
            return self._make_array(node)
        if name in _WORKSPACE_CALLS:
            given = [self.visit(argument) for argument in node.args[:3]]
            return operators.call("call_extern", node.dtype, [_WORKSPACE_CALLS[name], *given])
        if name == "tir.tvm_context_id":
            return operators.const(0, node.dtype)
        return node.map_children(self.visit)

    def _make_shape(self, node: Call) -> PrimExpr:
        stack = self.scope.shapes
        values = [self.visit(argument) for argument in node.args]
        begin = stack.take(max(len(values), 1))
        for position, value in enumerate(values):
            self.before.append(Store(stack.var, operators.cast("int64", value), begin + position))
        return address_of(stack.var, "int64", begin)

    def _make_array(self, node: Call) -> PrimExpr:
        data, shape, strides, ndim, element, elem_offset = (self.visit(argument) for argument in node.args)
        stack = self.scope.arrays
        index = stack.take(1)
        itemsize = operators.const(element.dtype.itemsize * element.dtype.lanes, "uint64")
        null = operators.const(0, "handle")
        fields = {
            StructField.DATA: data,
            StructField.SHAPE: shape,
            StructField.STRIDES: null if isinstance(strides, IntImm) else strides,
            StructField.NDIM: operators.cast("int32", ndim),
            StructField.TYPE_CODE: operators.const(element.dtype.type_code, "uint8"),
            StructField.TYPE_BITS: operators.const(element.dtype.bits, "uint8"),
            StructField.TYPE_LANES: operators.const(element.dtype.lanes, "uint16"),
            StructField.BYTE_OFFSET: operators.multiply(operators.cast("uint64", elem_offset), itemsize),
            StructField.DEVICE_ID: operators.cast("int32", self.device_id),
            StructField.DEVICE_TYPE: operators.cast("int32", self.device_type),
        }
        self.before.extend(
            Evaluate(struct_set(stack.var, index, name, value)) for name, value in fields.items()
        )
        return struct_get(stack.var, index, StructField.ADDRESS)

    def _packed_call(self, node: Call) -> tuple[Call, int]:
        """The lowered call, and the slot of its result. What fills the slots goes to ``before``."""
        values = [self.visit(argument) for argument in node.args[1:]]
        stack = self.scope.values
        begin = stack.take(len(values) + 1)
        end = begin + len(values)
        for slot, value in enumerate(values, begin):
            index, wide = _tagged(value)
            self._fill(slot, index, wide)
        self._fill(end, TypeIndex.NONE, operators.const(0, "int64"))
        return operators.call("tvm_call_packed_lowered", "int32", [node.args[0], stack.var, begin, end]), end

    def _fill(self, slot: int, index: TypeIndex, value: PrimExpr) -> None:
        stack = self.scope.values.var
        self.before.append(Evaluate(struct_set(stack, slot, StructField.ANY_TYPE_INDEX, int(index))))
        self.before.append(Evaluate(struct_set(stack, slot, StructField.ANY_VALUE, value)))

    def _release(self, slot: int) -> Stmt:
        """Release an unused result: an object belongs to the caller."""
        stack = self.scope.values.var
        kind = struct_get(stack, slot, StructField.ANY_TYPE_INDEX)
        result = address_of(stack, "uint8", slot * BYTES_OF_ANY)
        release = operators.call("call_extern", "int32", ["tilewright_any_release", result])
        return IfThenElse(operators.greater_equal(kind, int(TypeIndex.FIRST_OBJECT)), Evaluate(release))

    def _packed_result(self, node: Call) -> PrimExpr:
        """The value of a packed call, which runs before the statement that uses it."""
        lowered, slot = self._packed_call(node)
        self.before.append(Evaluate(lowered))
        stack = self.scope.values.var
        kind = struct_get(stack, slot, StructField.ANY_TYPE_INDEX)
        if node.dtype.is_handle:
            return struct_get(stack, slot, StructField.ANY_VALUE, "handle")
        integer = struct_get(stack, slot, StructField.ANY_VALUE, "int64")
        floating = struct_get(stack, slot, StructField.ANY_VALUE, "float64")
        is_float = operators.equal(kind, int(TypeIndex.FLOAT))
        is_integer = operators.logical_or(
            operators.equal(kind, int(TypeIndex.INT)), operators.equal(kind, int(TypeIndex.BOOL))
        )
        value = Select(is_float, operators.cast(node.dtype, floating), operators.cast(node.dtype, integer))
        if node.op.name == "tir.tvm_call_trace_packed":
            # A tracer that returns nothing leaves the traced value, its last argument, as it is.
            traced = self.visit(node.args[-1])
            return Select(operators.equal(kind, int(TypeIndex.NONE)), traced, value)
        name = node.args[0].value if isinstance(node.args[0], StringImm) else "the packed function"
        text = message("TypeError", f"{name} returned {{0:a}}, expected a number ({node.dtype})", [kind])
        # Nothing reads as zero, whose word it is: functions that are called for what they do return None.
        is_none = operators.equal(kind, int(TypeIndex.NONE))
        is_number = operators.logical_or(operators.logical_or(is_float, is_integer), is_none)
        self.before.append(AssertStmt(is_number, text, NO_OP))
        return value


def _tagged(value: PrimExpr) -> tuple[TypeIndex, PrimExpr]:
    """The type index of an argument, and the argument as wide as the slot."""
    if value.dtype.lanes != 1:
        raise LoweringError(f"a packed function takes numbers and pointers, not vectors ({value.dtype})")
    if isinstance(value, StringImm):
        return TypeIndex.RAW_STRING, value
    if value.dtype.is_handle:
        if isinstance(value, IntImm) and value.value == 0:
            return TypeIndex.NONE, operators.const(0, "int64")
        is_array = (
            isinstance(value, Call)
            and value.op.name == "tir.tvm_struct_get"
            and operators.equal(value.args[2], int(StructField.ADDRESS))
        )
        return (TypeIndex.DLTENSOR if is_array else TypeIndex.OPAQUE_POINTER), value
    if value.dtype.is_float:
        return TypeIndex.FLOAT, operators.cast("float64", value)
    if value.dtype.is_bool:
        return TypeIndex.BOOL, operators.cast("int64", value)
    return TypeIndex.INT, operators.cast("int64", value)


@dataclass(frozen=True)
class LowerTVMBuiltin(PrimFuncPass):
    """Lower calls into the runtime."""

    name = "tir.LowerTVMBuiltin"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        lower = _Lower()
        lower.note_plain(function.body)
        return function.with_body(lower.with_stacks(function.body))
