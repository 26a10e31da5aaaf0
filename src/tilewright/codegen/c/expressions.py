"""Expressions as C text.

C has no vector types. An expression of several lanes is printed once per lane, with ``lane`` selecting it; the
enclosing statement prints one line per lane. C compilers vectorize the lanes again.

Text is printed in one pass. What an expression needs first, such as the value of a ``Let``, is printed as lines before
the statement; under a condition that guards the evaluation it is substituted instead. A repeated expression with long
text is assigned to a variable, so that printing a graph does not expand it to a tree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.codegen.c.names import Names
from tilewright.ir import operators
from tilewright.ir.expr import (
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    Div,
    FloatImm,
    IntImm,
    Let,
    Load,
    Max,
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
    is_const,
)
from tilewright.ir.functor import Functor
from tilewright.ir.op import Op
from tilewright.support.dtype import FLOAT32, DataType
from tilewright.support.errors import CodegenError
from tilewright.support.numbers import integer_ends

_LONG = 240
"""Letters: an expression of more than these that is met again gets a variable."""

_C_TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
    "handle": "void*",
}

_BITWISE = {
    "tir.bitwise_and": "&",
    "tir.bitwise_or": "|",
    "tir.bitwise_xor": "^",
}


class ExpressionPrinter(Functor):
    """Prints expressions; a language overrides what it writes differently."""

    language = "C"
    types = _C_TYPES
    helper_prefix = "static inline "

    def __init__(self) -> None:
        self.names = Names()
        self.helpers: dict[str, str] = {}
        self.lines: list[str] = []
        self.indentation = 0
        self.lane: int | None = None
        self.guarded = 0
        self.element_types: dict[Var, DataType] = {}
        self.volatile: set[Var] = set()
        self._seen: dict[tuple[int, int | None], tuple[Any, str]] = {}

    # ---- text and lines ----

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * self.indentation + text)

    def start_statement(self) -> None:
        """Values may have changed: forget which text stands for which expression."""
        self._seen.clear()

    def scalar(self, expr: PrimExpr) -> str:
        """The text of an expression of one lane."""
        if expr.dtype.lanes != 1:
            raise CodegenError(f"{self.language} needs a scalar here, not {expr.dtype}: {expr}")
        outer, self.lane = self.lane, None
        text = self.visit(expr)
        self.lane = outer
        return text  # type: ignore[no-any-return]

    def of_lane(self, expr: PrimExpr, lane: int) -> str:
        """The text of one lane of an expression."""
        outer, self.lane = self.lane, lane
        text = self.visit(expr)
        self.lane = outer
        return text  # type: ignore[no-any-return]

    def visit(self, node: Any) -> Any:
        if isinstance(node, (Var, IntImm, FloatImm)):
            return super().visit(node)
        key = (id(node), self.lane if node.dtype.lanes > 1 else None)
        found = self._seen.get(key)
        if found is not None:
            text = found[1]
            if len(text) <= _LONG or self.guarded or node.dtype.is_handle:
                return text
            name = self.names.fresh("shared")
            self.line(self.binding(node.dtype.element, name, text))
            self._seen[key] = (node, name)
            return name
        text = super().visit(node)
        self._seen[key] = (node, text)
        return text

    def visit_default(self, node: Any) -> str:
        raise CodegenError(f"{self.language} has no text for {type(node).__name__}: {node}")

    def binding(self, dtype: DataType, name: str, value: str) -> str:
        """The statement that gives a value a name."""
        return f"{self.type_name(dtype)} {name} = {bare(value)};"

    # ---- types, constants, variables ----

    def type_name(self, dtype: DataType) -> str:
        """The name of a scalar type."""
        found = self.types.get(dtype)
        if found is None:
            raise CodegenError(f"{self.language} has no type for {dtype}")
        return found

    def storage_type(self, dtype: DataType) -> str:
        """The type of an element in memory."""
        return self.type_name(DataType("int8") if dtype.is_bool else dtype)

    def visit_int_imm(self, node: IntImm) -> str:
        dtype, value = node.dtype, node.value
        if dtype.is_handle:
            return "NULL" if value == 0 else f"((void*){value}ULL)"
        if dtype.is_bool:
            return "1" if value else "0"
        if dtype.bits < 32:
            return f"(({self.type_name(dtype)}){value})"
        if dtype.is_uint:
            return f"{value}U" if dtype.bits == 32 else f"{value}ULL"
        suffix = "" if dtype.bits == 32 else "LL"
        if value == -(1 << (dtype.bits - 1)):
            return f"(-{-(value + 1)}{suffix} - 1)"
        return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"

    def visit_float_imm(self, node: FloatImm) -> str:
        dtype, value = node.dtype, node.value
        if math.isnan(value):
            return self.cast_text("NAN", dtype)
        if math.isinf(value):
            return self.cast_text("INFINITY" if value > 0 else "(-INFINITY)", dtype)
        if dtype.bits == 64:
            text = repr(value)
            return text if value >= 0 else f"({text})"
        text = _float32_text(value)
        text = text if math.copysign(1.0, value) > 0 else f"({text})"
        return text if dtype.bits == 32 else self.cast_text(text, dtype)

    def cast_text(self, text: str, dtype: DataType) -> str:
        """A conversion to a type."""
        return f"(({self.type_name(dtype)}){text})"

    def visit_string_imm(self, node: StringImm) -> str:
        return string_literal(node.value)

    def visit_var(self, node: Var) -> str:
        name = self.names.of(node)
        return name if node.dtype.lanes == 1 else f"{name}[{self._current_lane(node)}]"

    # ---- arithmetic ----

    def _binary(self, node: Any, symbol: str) -> str:
        a, b = self.visit(node.a), self.visit(node.b)
        if node.dtype.is_integral and node.dtype.bits < 32 and not node.dtype.is_bool:
            # C computes in int; an unsigned product of 16 bits would overflow it.
            wide = f"({self.type_name(DataType('uint32'))})" if node.dtype.is_uint else ""
            return self.cast_text(f"({wide}{a} {symbol} {b})", node.dtype.element)
        return f"({a} {symbol} {b})"

    def visit_add(self, node: Add) -> str:
        return self._binary(node, "+")

    def visit_sub(self, node: Sub) -> str:
        return self._binary(node, "-")

    def visit_mul(self, node: Mul) -> str:
        return self._binary(node, "*")

    def visit_div(self, node: Div) -> str:
        return self._binary(node, "/") if _divides(node) else self._checked_division(node, "div", "/")

    def visit_mod(self, node: Mod) -> str:
        return self._binary(node, "%") if _divides(node) else self._checked_division(node, "mod", "%")

    def _checked_division(self, node: Any, name: str, symbol: str) -> str:
        """A division of integers that never traps: a divisor of zero counts as one, and by -1 the number wraps."""
        element = node.dtype.element
        kind, function = self.type_name(element), f"tw_{name}_{element}"
        by_one, by_minus_one = ("a", f"({kind})(0u - a)") if name == "div" else ("0", "0")
        negated = f"b == -1 ? {by_minus_one} : " if element.is_int else ""
        body = f"return b == 0 ? {by_one} : {negated}({kind})(a {symbol} b);"
        self.helpers[function] = f"{self.helper_prefix}{kind} {function}({kind} a, {kind} b) {{ {body} }}"
        return f"{function}({bare(self.visit(node.a))}, {bare(self.visit(node.b))})"

    def visit_min(self, node: Min) -> str:
        return self._choice(node, "min", "<=")

    def visit_max(self, node: Max) -> str:
        return self._choice(node, "max", ">=")

    def _choice(self, node: Any, name: str, symbol: str) -> str:
        """A helper function, because each operand must occur only once in the text."""
        element = node.dtype.element
        kind = self.type_name(element)
        function = f"tw_{name}_{element}"
        # Only a NaN differs from itself: of a NaN and a number the comparison would give the second.
        test = f"a {symbol} b || a != a" if element.is_float else f"a {symbol} b"
        self.helpers[function] = (
            f"{self.helper_prefix}{kind} {function}({kind} a, {kind} b) {{ return {test} ? a : b; }}"
        )
        return f"{function}({bare(self.visit(node.a))}, {bare(self.visit(node.b))})"

    def visit_cmp_expr(self, node: Any) -> str:
        symbol = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}[type(node).__name__]
        space = "(const void*)" if node.a.dtype.is_handle else ""
        return f"({space}{self.visit(node.a)} {symbol} {space}{self.visit(node.b)})"

    visit_eq = visit_ne = visit_lt = visit_le = visit_gt = visit_ge = visit_cmp_expr

    def visit_and(self, node: And) -> str:
        return f"({self.visit(node.a)} && {self.visit(node.b)})"

    def visit_or(self, node: Or) -> str:
        return f"({self.visit(node.a)} || {self.visit(node.b)})"

    def visit_not(self, node: Not) -> str:
        return f"(!{self.visit(node.a)})"

    def visit_select(self, node: Select) -> str:
        condition = (
            self.scalar(node.condition) if node.condition.dtype.lanes == 1 else self.visit(node.condition)
        )
        return f"({condition} ? {self.visit(node.true_value)} : {self.visit(node.false_value)})"

    def visit_cast(self, node: Cast) -> str:
        value = self.visit(node.value)
        if node.dtype.is_bool:
            return f"({value} != 0)"
        source, element = node.value.dtype.element, node.dtype.element
        if source.is_float and element.is_integral:
            return f"{self.saturating_helper(source, element)}({bare(value)})"
        return self.cast_text(value, element)

    def saturating_helper(self, source: DataType, target: DataType) -> str:
        """The name of a function that converts a float to an integer; beyond its range C leaves that undefined."""
        wide = DataType("float64") if source.bits == 64 else FLOAT32
        function = f"tw_{target}_of_{wide}"
        come, to, low, high = self.type_name(wide), self.type_name(target), *integer_ends(target)
        suffix = "" if wide.bits == 64 else "f"
        least, greatest = (self.visit(IntImm(target, end)) for end in (low, high))
        # Both bounds are powers of two or zero, and exact in every float.
        tests = (
            f"value < {float(low)!r}{suffix} ? {least} : value >= {float(high + 1)!r}{suffix} ? {greatest}"
        )
        body = f"return value != value ? ({to})0 : {tests} : ({to})value;"
        self.helpers[function] = f"{self.helper_prefix}{to} {function}({come} value) {{ {body} }}"
        return function

    # ---- vectors ----

    def _current_lane(self, node: PrimExpr) -> int:
        if self.lane is None:
            raise CodegenError(f"{self.language} has no vectors, and a scalar is required here: {node}")
        return self.lane

    def visit_ramp(self, node: Ramp) -> str:
        step = operators.multiply(node.stride, operators.const(self._current_lane(node), node.stride.dtype))
        return self.scalar(operators.add(node.base, step))

    def visit_broadcast(self, node: Broadcast) -> str:
        return self.scalar(node.value)

    def visit_shuffle(self, node: Shuffle) -> str:
        picked = node.indices[0 if node.dtype.lanes == 1 else self._current_lane(node)]
        if not isinstance(picked, IntImm):
            raise CodegenError(f"{self.language} picks lanes by constants, not by {picked}")
        return self._lane_of_concatenation(node.vectors, picked.value)

    def _lane_of_concatenation(self, vectors: Any, position: int) -> str:
        for vector in vectors:
            if position < vector.dtype.lanes:
                return self.scalar(vector) if vector.dtype.lanes == 1 else self.of_lane(vector, position)
            position -= vector.dtype.lanes
        raise CodegenError("a shuffle picks a lane that its vectors do not have")

    # ---- memory ----

    def element(self, pointer: Var, dtype: DataType, index: str) -> str:
        """An element of memory, as something that can be read and assigned."""
        name = self.names.of(pointer)
        kind = self.storage_type(dtype)
        volatile = "volatile " if pointer in self.volatile else ""
        declared = self.element_types.get(pointer)
        if declared is not None and self.storage_type(declared) == kind and not volatile:
            return f"{name}[{bare(index)}]"
        return f"(({volatile}{self.pointer_space(pointer)}{kind}*){name})[{bare(index)}]"

    def pointer_space(self, pointer: Var) -> str:
        """The qualifier before the element type of a pointer into this memory."""
        return ""

    def index_text(self, index: PrimExpr, lanes: int) -> str:
        """The index of the current lane's element."""
        if lanes > 1 and index.dtype.lanes == 1:
            lane = self._current_lane(index)
            scaled = operators.multiply(index, operators.const(lanes, index.dtype))
            return self.scalar(operators.add(scaled, operators.const(lane, index.dtype)))
        return self.visit(index)  # type: ignore[no-any-return]

    def visit_load(self, node: Load) -> str:
        if is_const(node.predicate, 1):
            return self.load_text(node)
        predicate = self.visit(node.predicate)
        self.guarded += 1
        text = self.load_text(node)
        self.guarded -= 1
        return f"({predicate} ? {text} : {self.cast_text('0', node.dtype.element)})"

    def load_text(self, node: Load) -> str:
        """One lane of a load whose predicate holds."""
        element = node.dtype.element
        text = self.element(node.buffer_var, element, self.index_text(node.index, node.dtype.lanes))
        return f"({text} != 0)" if element.is_bool else text

    # ---- names for values, and calls ----

    def visit_let(self, node: Let) -> str:
        if node.value.dtype.lanes != 1:
            raise CodegenError(f"{self.language} cannot name a vector inside an expression: {node.var.name}")
        value = self.scalar(node.value)
        if self.guarded:
            self.names.alias(node.var, f"({value})")
        else:
            self.line(self.binding(node.var.dtype, self.names.define(node.var), value))
        return self.visit(node.body)  # type: ignore[no-any-return]

    def visit_call(self, node: Call) -> str:
        if not isinstance(node.op, Op):
            return self.function_call(str(node.op.name_hint), node, 0)
        handler = getattr(self, f"call_{node.op.name.removeprefix('tir.')}", None)
        if handler is not None:
            return handler(node)  # type: ignore[no-any-return]
        symbol = _BITWISE.get(node.op.name)
        if symbol is not None:
            a, b = self.visit(node.args[0]), self.visit(node.args[1])
            text = f"({a} {symbol} {b})"
            return text if node.dtype.bits >= 32 else self.cast_text(text, node.dtype.element)
        raise CodegenError(
            f"{self.language} has no {node.op.name}; register a rule with register_intrin_lowering for this target"
        )

    def function_call(self, name: str, node: Call, skipped: int = 1) -> str:
        """A call by name; of several lanes, one call a lane."""
        arguments = []
        for argument in node.args[skipped:]:
            vector = argument.dtype.lanes > 1
            if vector and self.lane is None:
                raise CodegenError(f"{self.language} cannot pass the vector {argument} to {name}")
            arguments.append(bare(self.visit(argument) if vector else self.scalar(argument)))
        return f"{name}({', '.join(arguments)})"

    def call_call_extern(self, node: Call) -> str:
        name = node.args[0]
        if not isinstance(name, StringImm):
            raise CodegenError("the first argument of call_extern is the function's name")
        return self.function_call(name.value, node)

    call_call_pure_extern = call_call_extern

    def call_shift_left(self, node: Call) -> str:
        return self._shift(node, "shift_left", "<<", "0")

    def call_shift_right(self, node: Call) -> str:
        return self._shift(node, "shift_right", ">>", "a < 0 ? -1 : 0" if node.dtype.is_int else "0")

    def _shift(self, node: Call, name: str, symbol: str, moved_out: str) -> str:
        """A shift; C leaves counts out of range undefined, here they move all bits out."""
        element, count = node.dtype.element, node.args[1]
        while isinstance(count, Broadcast):
            count = count.value
        if isinstance(count, IntImm) and 0 <= count.value < element.bits:
            text = f"({self.visit(node.args[0])} {symbol} {self.visit(node.args[1])})"
            return text if element.bits >= 32 else self.cast_text(text, element)
        kind, function = self.type_name(element), f"tw_{name}_{element}"
        within = f"b < {element.bits}" if element.is_uint else f"b >= 0 && b < {element.bits}"
        body = f"return {within} ? ({kind})(a {symbol} b) : ({kind})({moved_out});"
        self.helpers[function] = f"{self.helper_prefix}{kind} {function}({kind} a, {kind} b) {{ {body} }}"
        return f"{function}({bare(self.visit(node.args[0]))}, {bare(self.visit(node.args[1]))})"

    def call_bitwise_not(self, node: Call) -> str:
        value = self.visit(node.args[0])
        if node.dtype.is_bool:
            return f"(!{value})"
        text = f"(~{value})"
        return text if node.dtype.bits >= 32 else self.cast_text(text, node.dtype.element)

    def call_if_then_else(self, node: Call) -> str:
        condition = self.visit(node.args[0])
        self.guarded += 1
        chosen, other = self.visit(node.args[1]), self.visit(node.args[2])
        self.guarded -= 1
        return f"({condition} ? {chosen} : {other})"

    def call_likely(self, node: Call) -> str:
        return self.visit(node.args[0])  # type: ignore[no-any-return]

    def call_isnullptr(self, node: Call) -> str:
        return f"({self.visit(node.args[0])} == NULL)"

    def call_same_address(self, node: Call) -> str:
        first, second = (self.visit(argument) for argument in node.args)
        return f"({first} == {second})"

    def call_large_uint_imm(self, node: Call) -> str:
        low, high = (part.value for part in node.args if isinstance(part, IntImm))
        return f"{(high << 32) | low}ULL"

    def call_address_of(self, node: Call) -> str:
        load = node.args[0]
        if not isinstance(load, Load):
            raise CodegenError(f"address_of takes an element of memory, not {load}")
        lanes = load.dtype.lanes
        outer, self.lane = self.lane, 0 if lanes > 1 else None
        text = self.element(load.buffer_var, load.dtype.element, self.index_text(load.index, lanes))
        self.lane = outer
        return f"(&{text})"

    def call_reinterpret(self, node: Call) -> str:
        source, target = node.args[0].dtype, node.dtype
        value = self.visit(node.args[0])
        if source.is_handle:
            return f"(({self.type_name(target)})(uintptr_t){value})"
        if target.is_handle:
            return f"((void*)(uintptr_t){value})"
        if source.lanes != target.lanes or source.bits != target.bits:
            raise CodegenError(f"{self.language} cannot reinterpret {source} as {target}")
        if source.element is target.element:
            return value  # type: ignore[no-any-return]
        return f"{self.bits_helper(source.element, target.element)}({value})"

    def bits_helper(self, source: DataType, target: DataType) -> str:
        """The name of a function that gives the same bits another type."""
        function = f"tw_bits_{source}_{target}"
        to, come = self.type_name(target), self.type_name(source)
        body = f"{to} result; memcpy(&result, &value, sizeof result); return result;"
        self.helpers[function] = f"{self.helper_prefix}{to} {function}({come} value) {{ {body} }}"
        return function

    def call_vectorlow(self, node: Call) -> str:
        return self.of_lane(node.args[-1], self._current_lane(node))

    def call_vectorhigh(self, node: Call) -> str:
        return self.of_lane(node.args[-1], node.dtype.lanes + self._current_lane(node))

    def call_vectorcombine(self, node: Call) -> str:
        return self._lane_of_concatenation(node.args[-2:], self._current_lane(node))


def _divides(node: Any) -> bool:
    """True where C's own division is defined: of floats, and by a constant other than zero and minus one."""
    divisor = node.b
    while isinstance(divisor, Broadcast):
        divisor = divisor.value
    return node.dtype.is_float or (isinstance(divisor, IntImm) and divisor.value not in (0, -1))


def _float32_text(value: float) -> str:
    with np.errstate(over="ignore"):
        text = repr(float(np.float32(value))) if abs(value) > 3.5e38 else str(np.float32(value))
    return f"{text}f" if any(letter in text for letter in ".en") else f"{text}.0f"


def bare(text: str) -> str:
    """The text without a pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")) or '"' in text:
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def string_literal(text: str) -> str:
    """The text as a C string."""
    escaped = []
    for byte in text.encode():
        character = chr(byte)
        if character in '"\\?':
            escaped.append("\\" + character)
        elif 32 <= byte < 127:
            escaped.append(character)
        else:
            escaped.append(f"\\{byte:03o}")
    return f'"{"".join(escaped)}"'
