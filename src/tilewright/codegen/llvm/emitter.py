"""The state of code generation for one function, and the conversions that every part of it needs.

Invariants while code is emitted:

* ``visit(expr)`` returns the operand that holds the expression's value; its type is ``types.register(expr.dtype)``.
* ``visit_index(expr)`` returns the value as an address offset. Index arithmetic is assumed not to overflow, so sums and
  products of signed indices are computed at pointer width: LLVM then sees plain affine addresses.
* ``memo`` and ``wide_memo`` hold the operands of the current statement, so that shared subexpressions are emitted once;
  ``fresh_memo`` guards a region whose operands must not be used outside it.
* ``streaming`` says that stores are of data too large to stay in the caches.
* ``mask``, if set, says which lanes are active: loads do not access memory for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.codegen.llvm.aliases import AliasScopes
from tilewright.codegen.llvm.machine import Machine
from tilewright.codegen.llvm.math.library import MathLibrary
from tilewright.codegen.llvm.types import integer_constant, splat, vector
from tilewright.codegen.llvm.writer import FunctionText, ModuleText, quote
from tilewright.ir.expr import Add, Call, IntImm, Mul, PrimExpr, Sub, Var
from tilewright.ir.functor import Functor
from tilewright.ir.op import CallEffectKind
from tilewright.runtime.binding import SLOT_PREFIX
from tilewright.support.dtype import FLOAT32, DataType
from tilewright.support.errors import CodegenError, InternalError

NON_INDEX_BITS = 16
"""Integers of at most this many bits are data, never indices: their arithmetic wraps."""


@dataclass
class ModuleContext:
    """The state that all functions of a module share."""

    machine: Machine
    text: ModuleText
    math: MathLibrary
    symbols: dict[str, str] = field(default_factory=dict)
    """Symbols of the functions in the module, by the name that calls use."""
    imported: list[str] = field(default_factory=list)
    """LLVM IR (or paths of files with it) that schedules ask to link in."""
    slots: set[str] = field(default_factory=set)
    """The symbols through which packed functions are called."""

    def packed_slot(self, name: str) -> str:
        """The operand of the slot through which a packed function is called: one for each name and library.

        Protected: a library never takes the slots of another that was loaded before it.
        """
        if not name.isprintable():  # such a name cannot be a symbol's
            symbol = self.text.unique("packed")
            self.text.add_global(f"@{symbol} = internal global ptr null, align 8")
            return f"@{symbol}"
        symbol = quote(SLOT_PREFIX + name)
        if symbol not in self.slots:
            self.slots.add(symbol)
            seen = self.machine.export or "protected"
            self.text.add_global(f"@{symbol} = weak {seen} global ptr null, align 8")
        return f"@{symbol}"


@dataclass
class FunctionContext:
    """The state that the parts of one function (itself and its outlined parallel bodies) share."""

    name: str
    aliases: AliasScopes
    alignments: dict[Var, int] = field(default_factory=dict)
    """Bytes to which a pointer variable is known to be aligned."""
    factors: dict[Var, int] = field(default_factory=dict)
    """A power of two that divides an integer variable's value."""
    volatile: set[Var] = field(default_factory=set)
    tiles: list[int] | None = None
    """The sizes for which the tasks of the next parallel loop configure the matrix unit."""


class Emitter(Functor):
    """Emits into one LLVM function."""

    def __init__(self, module: ModuleContext, context: FunctionContext, function: FunctionText) -> None:
        self.module = module
        self.machine = module.machine
        self.types = module.machine.types
        self.context = context
        self.function = function
        self.variables: dict[Var, str] = {}
        self.wide_variables: dict[Var, str] = {}
        self.memo: dict[int, tuple[Any, str]] = {}
        self.wide_memo: dict[int, tuple[Any, str]] = {}
        self._forgotten = 0
        self.mask: str | None = None
        self.mask_lanes = 1
        self.in_parallel = False
        self.streaming = False

    # Values

    def visit(self, node: Any) -> str:
        """The operand of an expression."""
        found = self.memo.get(id(node))
        if found is not None:
            return found[1]
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        operand: str = handler(self, node)
        if type(node) is Call and node.effect > CallEffectKind.ReadState:
            # What was read before the call may have changed, and the call itself must happen each time.
            self.forget()
        else:
            self.memo[id(node)] = (node, operand)
        return operand

    def forget(self) -> None:
        """Start afresh: what was computed before may no longer hold."""
        self.memo, self.wide_memo = {}, {}
        self._forgotten += 1

    @contextmanager
    def fresh_memo(self, *, keep: bool) -> Iterator[None]:
        """Within the block, operands are remembered apart; those from before can be used if ``keep`` is set."""
        saved, forgotten = (self.memo, self.wide_memo), self._forgotten
        self.memo, self.wide_memo = (dict(saved[0]), dict(saved[1])) if keep else ({}, {})
        try:
            yield
        finally:
            # A call inside that changed memory outdates what was loaded before, too.
            self.memo, self.wide_memo = saved if forgotten == self._forgotten else ({}, {})

    def visit_default(self, node: Any) -> str:
        """Nodes that a code generator never meets after lowering."""
        raise CodegenError(
            f"{type(node).__name__} cannot become machine code; lower the function first (tvm.lower, StorageFlatten)",
            span=getattr(node, "span", None),
        )

    def visit_index(self, expr: PrimExpr) -> str:
        """The value of a scalar integer as an offset, as wide as a pointer; see the module's text."""
        if type(expr) is IntImm:
            return str(expr.value)
        if isinstance(expr, Var):
            found = self.wide_variables.get(expr)
            if found is not None:
                return found
        elif expr.dtype.is_int and expr.dtype.bits > NON_INDEX_BITS:
            instruction = _WIDE_OPERATIONS.get(type(expr))
            if instruction is not None:
                known = self.wide_memo.get(id(expr))
                if known is not None:
                    return known[1]
                left = self.visit_index(expr.a)  # type: ignore[attr-defined]
                right = self.visit_index(expr.b)  # type: ignore[attr-defined]
                operand = self.function.value(f"{instruction} {self.types.index} {left}, {right}")
                self.wide_memo[id(expr)] = (expr, operand)
                return operand
        return self.widen(self.visit(expr), expr.dtype)

    def offset(self, expr: PrimExpr) -> tuple[str, str]:
        """A scalar index as the type and the operand with which an address is computed."""
        return self.types.index, self.visit_index(expr)

    def constant_distance(self, index: PrimExpr) -> tuple[PrimExpr, int]:
        """An index without the constant that is added to it, and that constant; zero where there is none."""
        if type(index) is Add and type(index.b) is IntImm and type(index.a) is not IntImm:
            if index.dtype.is_int and index.dtype.bits > NON_INDEX_BITS:
                return index.a, index.b.value
        return index, 0

    def index_as(self, expr: PrimExpr, kind: str) -> str:
        """An index as an operand of an integer type that ``counter_type`` or ``comparison_type`` chose for it."""
        return self.visit_index(expr)

    def comparison_type(self, a: PrimExpr, b: PrimExpr) -> str:
        """The integer type in which two indices are compared."""
        return self.types.index

    def pointer_type(self, var: Var) -> str:
        """The type of a pointer variable."""
        return "ptr"

    def pointer(self, expr: PrimExpr) -> tuple[str, str]:
        """The type and the operand of an expression that is an address."""
        return "ptr", self.visit(expr)

    def widen(self, operand: str, dtype: DataType) -> str:
        """An integer of one lane, sign-extended (or zero-extended, or cut) to the width of a pointer."""
        if dtype.bits == self.types.pointer_bits:
            return operand
        if dtype.bits > self.types.pointer_bits:
            return self.function.value(f"trunc i{dtype.bits} {operand} to {self.types.index}")
        how = "sext" if dtype.is_int else "zext"
        return self.function.value(f"{how} i{dtype.bits} {operand} to {self.types.index}")

    def define(self, var: Var, operand: str) -> None:
        """Give a variable its value, and its wide form where it may be an index."""
        self.variables[var] = operand
        if var.dtype.is_integral and not var.dtype.is_bool and var.dtype.lanes == 1:
            self.wide_variables[var] = self.widen(operand, var.dtype)

    def variable(self, var: Var) -> str:
        """The operand of a variable that has been defined."""
        found = self.variables.get(var)
        if found is None:
            raise InternalError(
                f"the variable {var.name} is used in function {self.context.name} outside its definition"
            )
        return found

    def broadcast(self, operand: str, dtype: DataType, lanes: int) -> str:
        """A register value of one lane, in every lane."""
        element = self.types.register(dtype)
        if lanes == 1:
            return operand
        if not operand.startswith("%"):
            return splat(element, operand, lanes)
        whole = vector(element, lanes)
        first = self.function.value(f"insertelement {whole} poison, {element} {operand}, i64 0")
        return self.function.value(
            f"shufflevector {whole} {first}, {whole} poison, <{lanes} x i32> zeroinitializer"
        )

    def lane(self, operand: str, dtype: DataType, position: int) -> str:
        """One lane of a vector."""
        if dtype.lanes == 1:
            return operand
        return self.function.value(f"extractelement {self.types.register(dtype)} {operand}, i64 {position}")

    def assemble(self, operands: Sequence[str], dtype: DataType) -> str:
        """A vector of the given lanes."""
        if dtype.lanes == 1:
            return operands[0]
        whole, element = self.types.register(dtype), self.types.register(dtype.element)
        made = "poison"
        for position, operand in enumerate(operands):
            made = self.function.value(f"insertelement {whole} {made}, {element} {operand}, i64 {position}")
        return made

    # Calls

    def call_math(self, name: str, dtype: DataType, operands: Sequence[str]) -> str:
        """A call of the inlined math function ``name`` on operands of type ``dtype``."""
        found = self.module.math.function(self.module.text, name, dtype)
        arguments = ", ".join(
            f"{kind} {operand}" for kind, operand in zip(found.parameters, operands, strict=True)
        )
        return self.function.pure(f"call {found.result} @{found.name}({arguments})")

    def half_math(self, name: str) -> str:
        """The float32 function that computes ``name`` for float16 and bfloat16."""
        return name

    def call_llvm(self, name: str, result: str, arguments: Sequence[tuple[str, str]], flags: str = "") -> str:
        """A call of an LLVM intrinsic; LLVM finds the overload by the types. ``flags`` are fast-math flags."""
        text = ", ".join(f"{kind} {operand}" for kind, operand in arguments)
        if result == "void":
            self.function.effect(f"call void @{name}({text})")
            return ""
        return self.function.value(f"call {flags}{result} @{name}({text})")

    def call_c(
        self, name: str, result: str, arguments: Sequence[tuple[str, str]], attributes: str = ""
    ) -> str:
        """A call of a C function; ``arguments`` are pairs of type (with its extension attribute) and operand."""
        operand = self.module.text.declare(name, result, [kind for kind, _ in arguments], attributes)
        text = ", ".join(f"{kind} {value}" for kind, value in arguments)
        if result == "void":
            self.function.effect(f"call void {operand}({text})")
            return ""
        return self.function.value(f"call {result} {operand}({text})")

    # Conversions

    def as_float32(self, operand: str, dtype: DataType) -> str:
        """A float16 or bfloat16 value as float32, which is exact."""
        if self.types.is_soft(dtype):
            return self.call_math(
                "bfloat16_to_float32" if dtype.is_bfloat16 else "float16_to_float32", dtype, [operand]
            )
        wide = self.types.register(FLOAT32.with_lanes(dtype.lanes))
        return self.function.value(f"fpext {self.types.register(dtype)} {operand} to {wide}")

    def from_float32(self, operand: str, dtype: DataType) -> str:
        """A float32 value rounded to float16 or bfloat16, ties to even."""
        if self.types.is_soft(dtype):
            return self.call_math(
                "float32_to_bfloat16" if dtype.is_bfloat16 else "float32_to_float16", dtype, [operand]
            )
        wide = self.types.register(FLOAT32.with_lanes(dtype.lanes))
        return self.function.value(f"fptrunc {wide} {operand} to {self.types.register(dtype)}")

    def constant(self, dtype: DataType, value: int) -> str:
        """An integer constant in every lane."""
        return splat(self.types.register(dtype.element), integer_constant(dtype.element, value), dtype.lanes)


_WIDE_OPERATIONS: dict[type, str] = {Add: "add nsw", Sub: "sub nsw", Mul: "mul nsw"}
