"""Expressions.

Integer division never traps: a divisor that turns out to be zero counts as one, and the smallest number divided by
-1 wraps. The minimum or maximum of a NaN and anything is NaN. Floats convert to integers by truncation, saturating at
the ends of the integer's range, NaN giving zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from tilewright.codegen.llvm import division, memory
from tilewright.codegen.llvm.calls import CALLS, Handler, call_function
from tilewright.codegen.llvm.convert import convert, in_range, narrowed, rounded_in_range
from tilewright.codegen.llvm.emitter import NON_INDEX_BITS, Emitter
from tilewright.codegen.llvm.half_products import half_product, is_half_product
from tilewright.codegen.llvm.indices import is_pure_index
from tilewright.codegen.llvm.packed_lanes import dot_product, is_dot_product, joined
from tilewright.codegen.llvm.types import float_constant, integer_constant, splat
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryOpExpr,
    Broadcast,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
)
from tilewright.ir.op import Op
from tilewright.support.dtype import FLOAT32, DataType
from tilewright.support.errors import CodegenError

_COMPARISONS: dict[type, tuple[str, str, str]] = {
    EQ: ("eq", "eq", "oeq"),
    NE: ("ne", "ne", "une"),
    LT: ("slt", "ult", "olt"),
    LE: ("sle", "ule", "ole"),
    GT: ("sgt", "ugt", "ogt"),
    GE: ("sge", "uge", "oge"),
}
_FLOAT_OPERATIONS: dict[type, str] = {Add: "fadd", Sub: "fsub", Mul: "fmul", Div: "fdiv", Mod: "frem"}
_INTEGER_OPERATIONS: dict[type, str] = {Add: "add", Sub: "sub", Mul: "mul"}


def _is_number(expr: PrimExpr) -> bool:
    """True for a constant, or a broadcast of one, that is not a NaN."""
    while isinstance(expr, Broadcast):
        expr = expr.value
    return isinstance(expr, FloatImm) and not math.isnan(expr.value)


def _rounded(expr: PrimExpr) -> tuple[PrimExpr, int] | None:
    """The operand of a rounding to the nearest even integer, and the small integer that is added to it."""
    offset = 0
    if isinstance(expr, Add):
        number = expr.b.value if isinstance(expr.b, Broadcast) else expr.b
        if not isinstance(number, FloatImm) or abs(number.value) > 1 << 16 or number.value % 1:
            return None
        expr, offset = expr.a, int(number.value)
    if isinstance(expr, Call) and getattr(expr.op, "name", "") == "tir.nearbyint":
        return expr.args[0], offset
    return None


class ExpressionEmitter(Emitter):
    """Emits expressions; each ``visit_*`` gives the operand that holds the value."""

    calls: ClassVar[Mapping[str, Handler]] = CALLS

    def visit_int_imm(self, node: IntImm) -> str:
        return integer_constant(node.dtype, node.value)

    def visit_float_imm(self, node: FloatImm) -> str:
        """A constant, rounded to its type."""
        return float_constant(self.types, node.dtype, node.value)

    def visit_string_imm(self, node: StringImm) -> str:
        """A pointer to the text."""
        return self.module.text.string(node.value)

    def visit_var(self, node: Var) -> str:
        return self.variable(node)

    def visit_cast(self, node: Cast) -> str:
        source, result = node.value.dtype, node.dtype
        found = self._in_range(node)
        if found is not None:
            return narrowed(self, found, result)
        if isinstance(node.value, Cast) and (result.is_float or result.bits == 32):
            # What was narrowed and is widened again need not be narrow in between.
            found = self._in_range(node.value)
            if found is not None:
                return convert(self, found, DataType("int32").with_lanes(source.lanes), result)
        return convert(self, self.visit(node.value), source, result)

    def _in_range(self, node: Cast) -> str | None:
        """float32 vectors that a cast makes integers of 8 or 16 bits as int32 in their range; None for other casts."""
        source, result = node.value.dtype, node.dtype
        if not (source.lanes > 1 and source.is_float and source.bits == 32):
            return None
        if not (result.is_int or result.is_uint) or result.is_bool or not 8 <= result.bits <= 16:
            return None
        if self.machine.family == "x86" and result.is_uint:
            found = _rounded(node.value)
            if found is not None:
                return rounded_in_range(self, self.visit(found[0]), source, result, found[1])
        return in_range(self, self.visit(node.value), source, result)

    def visit_add(self, node: BinaryOpExpr) -> str:
        dtype = node.dtype
        if isinstance(node, Add):
            for product, addend in ((node.b, node.a), (node.a, node.b)):
                if is_dot_product(product):
                    return dot_product(self, product, addend)
                if isinstance(product, Mul) and is_half_product(self.machine, product):
                    return half_product(self, product, addend)
                if isinstance(product, Mul) and self._fuses(product):
                    kind = self.types.register(dtype)
                    operands = [(kind, self.visit(part)) for part in (product.a, product.b, addend)]
                    return self.call_llvm("llvm.fma", kind, operands, self.machine.float_flags)
        if dtype.is_float:
            return self._float_operation(node)
        left, right = self.visit(node.a), self.visit(node.b)
        name = _INTEGER_OPERATIONS[type(node)]
        return self.function.value(f"{name} {self.types.register(dtype)} {left}, {right}")

    visit_sub = visit_add
    visit_mul = visit_add

    def visit_div(self, node: Div) -> str:
        """A quotient, truncated for integers."""
        return (
            self._float_operation(node)
            if node.dtype.is_float
            else division.truncated(self, node.a, node.b)[0]
        )

    def visit_mod(self, node: Mod) -> str:
        """The remainder of a truncated division."""
        if node.dtype.is_float:
            return self._math("fmod", node)
        return division.truncated(self, node.a, node.b)[1]

    def visit_floor_div(self, node: FloorDiv) -> str:
        """A quotient rounded down."""
        return division.floored(self, node.a, node.b)[0]

    def visit_floor_mod(self, node: FloorMod) -> str:
        """The remainder of a division rounded down."""
        return division.floored(self, node.a, node.b)[1]

    def _fuses(self, product: Mul) -> bool:
        """True for vectors whose product and sum have to be written as one operation: LLVM joins the two by itself,
        where the flags allow it, but for NEON on 32-bit ARM. There, only the unfused form multiplies by an element."""
        machine, dtype = self.machine, product.dtype
        is_vector = dtype.is_float and dtype.bits == 32 and dtype.lanes > 1
        by_element = isinstance(product.a, Shuffle) or isinstance(product.b, Shuffle)
        fuses = is_vector and machine.family == "arm" and machine.has_fma and bool(machine.float_flags)
        return fuses and not by_element

    def _float_operation(self, node: BinaryOpExpr) -> str:
        dtype = node.dtype
        left, right = self.visit(node.a), self.visit(node.b)
        name, flags = _FLOAT_OPERATIONS[type(node)], self.machine.float_flags
        if not self.types.is_soft(dtype):
            return self.function.value(f"{name} {flags}{self.types.register(dtype)} {left}, {right}")
        wide = self.types.register(FLOAT32.with_lanes(dtype.lanes))
        left, right = self.as_float32(left, dtype), self.as_float32(right, dtype)
        return self.from_float32(self.function.value(f"{name} {wide} {left}, {right}"), dtype)

    def _math(self, name: str, node: BinaryOpExpr) -> str:
        return call_function(self, name, node.dtype, [node.a, node.b])

    def visit_min(self, node: BinaryOpExpr) -> str:
        """The smaller or larger operand."""
        smaller = isinstance(node, Min)
        dtype, kind = node.dtype, self.types.register(node.dtype)
        left, right = self.visit(node.a), self.visit(node.b)
        if dtype.is_float:
            return self._float_extremum(node, "lt" if smaller else "gt", left, right)
        name = ("s" if dtype.is_int else "u") + ("min" if smaller else "max")
        return self.call_llvm(f"llvm.{name}", kind, [(kind, left), (kind, right)])

    def _float_extremum(self, node: BinaryOpExpr, comparison: str, left: str, right: str) -> str:
        """``a <= b ? a : b``, and NaN where an operand is.

        x86 has ``b < a ? b : a`` in one instruction, which gives ``a`` where they are equal or do not compare: only a
        NaN in the second operand is lost. A constant second operand costs nothing, and the test of a reduction, whose
        second operand is the new element, does not wait for the elements before it.
        """
        dtype = node.dtype
        kind, bools = self.types.register(dtype), self._bools(dtype)
        if _is_number(node.a) and not _is_number(node.b):
            taken = self._compare_floats(f"o{comparison[0]}e", left, right, dtype)
            return self.function.value(f"select {bools} {taken}, {kind} {left}, {kind} {right}")
        if self.machine.family == "x86" and not self.types.is_soft(dtype) and not _is_number(node.b):
            # Written as comparisons, LLVM would merge both into one mask, and lose the instruction. The flag is about
            # the sign of zeros: without it LLVM orders them, with it the instruction decides.
            name = "llvm.minimum" if comparison == "lt" else "llvm.maximum"
            return self.call_llvm(name, kind, [(kind, right), (kind, left)], "nsz ")
        taken = self._compare_floats(f"o{comparison}", right, left, dtype)
        chosen = self.function.value(f"select {bools} {taken}, {kind} {right}, {kind} {left}")
        if _is_number(node.b):
            return chosen
        lost = self._compare_floats("uno", right, right, dtype)
        return self.function.value(f"select {bools} {lost}, {kind} {right}, {kind} {chosen}")

    visit_max = visit_min

    def visit_eq(self, node: CmpExpr) -> str:
        signed, unsigned, ordered = _COMPARISONS[type(node)]
        dtype = node.a.dtype
        if dtype.is_float:
            return self._compare_floats(ordered, self.visit(node.a), self.visit(node.b), dtype)
        if dtype.is_int and dtype.bits > NON_INDEX_BITS and dtype.lanes == 1:
            if is_pure_index(node.a) and is_pure_index(node.b) and dtype.bits <= self.types.pointer_bits:
                kind = self.comparison_type(node.a, node.b)
                left, right = self.index_as(node.a, kind), self.index_as(node.b, kind)
                return self.function.value(f"icmp {signed} {kind} {left}, {right}")
        name = signed if dtype.is_int else unsigned
        left, right = self.visit(node.a), self.visit(node.b)
        return self.function.value(f"icmp {name} {self.types.register(dtype)} {left}, {right}")

    visit_ne = visit_eq
    visit_lt = visit_eq
    visit_le = visit_eq
    visit_gt = visit_eq
    visit_ge = visit_eq

    def _compare_floats(self, name: str, left: str, right: str, dtype: DataType) -> str:
        if self.types.is_soft(dtype):
            left, right = self.as_float32(left, dtype), self.as_float32(right, dtype)
            dtype = FLOAT32.with_lanes(dtype.lanes)
        return self.function.value(f"fcmp {name} {self.types.register(dtype)} {left}, {right}")

    def _bools(self, dtype: DataType) -> str:
        return "i1" if dtype.lanes == 1 else f"<{dtype.lanes} x i1>"

    def visit_and(self, node: And) -> str:
        """Both; the operands have no effects, so both may be evaluated."""
        left, right = self.visit(node.a), self.visit(node.b)
        return self.function.value(f"and {self.types.register(node.dtype)} {left}, {right}")

    def visit_or(self, node: Or) -> str:
        left, right = self.visit(node.a), self.visit(node.b)
        return self.function.value(f"or {self.types.register(node.dtype)} {left}, {right}")

    def visit_not(self, node: Not) -> str:
        kind = self.types.register(node.dtype)
        return self.function.value(
            f"xor {kind} {self.visit(node.a)}, {splat('i1', 'true', node.dtype.lanes)}"
        )

    def visit_select(self, node: Select) -> str:
        """One of two evaluated values."""
        condition = self.visit(node.condition)
        yes, no = self.visit(node.true_value), self.visit(node.false_value)
        kind = self.types.register(node.dtype)
        return self.function.value(
            f"select {self.types.register(node.condition.dtype)} {condition}, {kind} {yes}, {kind} {no}"
        )

    def visit_load(self, node: Load) -> str:
        return memory.load(self, node)

    def visit_let(self, node: Let) -> str:
        """The body with the variable defined."""
        self.define(node.var, self.visit(node.value))
        return self.visit(node.body)

    def visit_broadcast(self, node: Broadcast) -> str:
        """A value in every lane."""
        return self.broadcast(self.visit(node.value), node.value.dtype, node.lanes)

    def visit_ramp(self, node: Ramp) -> str:
        """``base + stride * lane``."""
        element, whole = self.types.register(node.base.dtype), self.types.register(node.dtype)
        base, lanes = node.base, node.lanes
        if isinstance(base, IntImm) and isinstance(node.stride, IntImm):
            wrap = [IntImm(base.dtype, base.value + node.stride.value * lane).value for lane in range(lanes)]
            return "<" + ", ".join(f"{element} {value}" for value in wrap) + ">"
        start = self.broadcast(self.visit(base), base.dtype, lanes)
        counts = "<" + ", ".join(f"{element} {lane}" for lane in range(lanes)) + ">"
        steps = counts
        if not (isinstance(node.stride, IntImm) and node.stride.value == 1):
            stride = self.broadcast(self.visit(node.stride), base.dtype, lanes)
            steps = self.function.value(f"mul {whole} {stride}, {counts}")
        return self.function.value(f"add {whole} {start}, {steps}")

    def visit_shuffle(self, node: Shuffle) -> str:
        """Lanes picked out of several vectors."""
        picks = []
        for index in node.indices:
            if not isinstance(index, IntImm):
                raise CodegenError(f"a shuffle picks constant lanes, not {index}", span=node.span)
            picks.append(index.value)
        vectors = [(self.visit(vector), vector.dtype) for vector in node.vectors]
        if len(picks) > 1 and all(dtype.lanes > 1 for _, dtype in vectors):
            total = sum(dtype.lanes for _, dtype in vectors)
            whole = node.dtype.with_lanes(total)
            operand = joined(self, [(operand, dtype.lanes) for operand, dtype in vectors], whole)
            if picks == list(range(total)):
                return operand
            kind, mask = self.types.register(whole), ", ".join(f"i32 {pick}" for pick in picks)
            return self.function.value(
                f"shufflevector {kind} {operand}, {kind} poison, <{len(picks)} x i32> <{mask}>"
            )
        lanes = [(operand, dtype, lane) for operand, dtype in vectors for lane in range(dtype.lanes)]
        return self.assemble([self.lane(*lanes[pick]) for pick in picks], node.dtype)

    def visit_call(self, node: Call) -> str:
        """A call of an intrinsic, or of another function of the module."""
        if not isinstance(node.op, Op):
            return self._call_global(node)
        handler = self.calls.get(node.op.name)
        if handler is None:
            raise CodegenError(
                f"{node.op.name} on {node.dtype} has no machine code on {self.machine.triple}; "
                "register a lowering with tvm.ir.register_intrin_lowering",
                span=node.span,
            )
        return handler(self, node)

    def _call_global(self, node: Call) -> str:
        """A direct call of a function in the same module."""
        called: Any = node.op
        name = getattr(called, "name_hint", None)
        symbol = self.module.symbols.get(name) if isinstance(name, str) else None
        if symbol is None:
            raise CodegenError(
                f"the function {name} that {self.context.name} calls is not in the module", span=node.span
            )
        arguments = [(self.types.register(argument.dtype), self.visit(argument)) for argument in node.args]
        return self.call_c(symbol, self.types.register(node.dtype), arguments)
