"""Derivatives of expressions with respect to elements of tensors.

An element that is read at two places with the same indices is one variable. Functions without a useful derivative
(``floor``, ``round``, a comparison) have the derivative zero, and at a kink (``abs``, ``max``) the derivative is that
of the selected side.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.ir import operators
from tilewright.ir.expr import (
    Call,
    Cast,
    Let,
    Max,
    Min,
    PrimExpr,
    ProducerLoad,
    Select,
    Var,
    is_const,
)
from tilewright.ir.functor import Functor, post_order, substitute_expr
from tilewright.support.errors import ExpressionError
from tilewright.tir import op

Rule = Callable[..., list[PrimExpr]]


def _constant(value: float, like: PrimExpr) -> PrimExpr:
    return operators.const(value, like.dtype)


RULES: dict[str, Rule] = {
    "exp": lambda x: [op.exp(x)],
    "exp2": lambda x: [op.exp2(x) * _constant(math.log(2), x)],
    "exp10": lambda x: [op.exp10(x) * _constant(math.log(10), x)],
    "log": lambda x: [_constant(1, x) / x],
    "log2": lambda x: [_constant(1 / math.log(2), x) / x],
    "log10": lambda x: [_constant(1 / math.log(10), x) / x],
    "log1p": lambda x: [_constant(1, x) / (x + _constant(1, x))],
    "tanh": lambda x: [_constant(1, x) - op.tanh(x) * op.tanh(x)],
    "sigmoid": lambda x: [op.sigmoid(x) * (_constant(1, x) - op.sigmoid(x))],
    "erf": lambda x: [_constant(2 / math.sqrt(math.pi), x) * op.exp(-(x * x))],
    "sqrt": lambda x: [_constant(0.5, x) / op.sqrt(x)],
    "rsqrt": lambda x: [_constant(-0.5, x) * op.rsqrt(x) / x],
    "sin": lambda x: [op.cos(x)],
    "cos": lambda x: [-op.sin(x)],
    "tan": lambda x: [_constant(1, x) + op.tan(x) * op.tan(x)],
    "sinh": lambda x: [op.cosh(x)],
    "cosh": lambda x: [op.sinh(x)],
    "asin": lambda x: [op.rsqrt(_constant(1, x) - x * x)],
    "acos": lambda x: [-op.rsqrt(_constant(1, x) - x * x)],
    "atan": lambda x: [_constant(1, x) / (_constant(1, x) + x * x)],
    "asinh": lambda x: [op.rsqrt(x * x + _constant(1, x))],
    "acosh": lambda x: [op.rsqrt(x * x - _constant(1, x))],
    "atanh": lambda x: [_constant(1, x) / (_constant(1, x) - x * x)],
    "fabs": lambda x: [Select(x > _constant(0, x), _constant(1, x), _constant(-1, x))],
    "pow": lambda x, y: [y * op.power(x, y - _constant(1, y)), op.power(x, y) * op.log(x)],
    "atan2": lambda y, x: [x / (x * x + y * y), -y / (x * x + y * y)],
    "hypot": lambda x, y: [x / op.hypot(x, y), y / op.hypot(x, y)],
}
"""For each function, the partial derivatives at its arguments."""

_FLAT = frozenset({"floor", "ceil", "trunc", "round", "nearbyint", "sign", "isnan", "isfinite", "isinf"})
_TRANSPARENT = frozenset({"likely"})


def same_element(one: ProducerLoad, other: ProducerLoad) -> bool:
    """True if two reads are of the same element, as far as their text shows."""
    return one is other or (
        one.producer is other.producer
        and all(_same_index(left, right) for left, right in zip(one.indices, other.indices, strict=True))
    )


def _same_index(one: PrimExpr, other: PrimExpr) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or one.dtype is not other.dtype:
        return False
    left, right = one.children(), other.children()
    if not left:
        return not isinstance(one, Var) and getattr(one, "value", None) == getattr(other, "value", object())
    if isinstance(one, Call) and isinstance(other, Call) and one.op is not other.op:
        return False
    return len(left) == len(right) and all(_same_index(a, b) for a, b in zip(left, right, strict=True))  # type: ignore[arg-type]


def reads_of(expr: PrimExpr, producer: object) -> list[ProducerLoad]:
    """The different elements of a tensor that an expression reads."""
    found: list[ProducerLoad] = []
    for part in post_order(expr):
        if (
            isinstance(part, ProducerLoad)
            and part.producer is producer
            and not any(same_element(part, one) for one in found)
        ):
            found.append(part)
    return found


class _Derivative(Functor):
    """The derivative of an expression by one element; None stands for zero."""

    def __init__(self, element: ProducerLoad) -> None:
        self.element = element
        self.known: dict[int, tuple[PrimExpr, PrimExpr | None]] = {}

    def visit(self, node: PrimExpr) -> PrimExpr | None:
        found = self.known.get(id(node))
        if found is None:
            result = super().visit(node) if node.dtype.is_float else None
            found = self.known[id(node)] = (node, result)
        return found[1]

    def visit_default(self, node: PrimExpr) -> PrimExpr | None:
        if any(self.visit(child) is not None for child in node.children() if isinstance(child, PrimExpr)):
            raise ExpressionError(f"there is no rule for the derivative of {type(node).__name__}: {node}")
        return None

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr | None:
        return operators.const(1, node.dtype) if same_element(node, self.element) else None

    def visit_add(self, node: PrimExpr) -> PrimExpr | None:
        a, b = (self.visit(child) for child in node.children())  # type: ignore[arg-type]
        return b if a is None else a if b is None else a + b

    def visit_sub(self, node: PrimExpr) -> PrimExpr | None:
        a, b = (self.visit(child) for child in node.children())  # type: ignore[arg-type]
        return a if b is None else -b if a is None else a - b

    def visit_mul(self, node: PrimExpr) -> PrimExpr | None:
        left, right = node.children()
        a, b = self.visit(left), self.visit(right)  # type: ignore[arg-type]
        first = None if a is None else times(a, right)  # type: ignore[arg-type]
        second = None if b is None else times(left, b)  # type: ignore[arg-type]
        return second if first is None else first if second is None else first + second

    def visit_div(self, node: PrimExpr) -> PrimExpr | None:
        left, right = node.children()
        a, b = self.visit(left), self.visit(right)  # type: ignore[arg-type]
        first = None if a is None else a / right
        second = None if b is None else -(node / right) * b
        return second if first is None else first if second is None else first + second

    def visit_min(self, node: Min) -> PrimExpr | None:
        return self._choose(node.a <= node.b, node.a, node.b)

    def visit_max(self, node: Max) -> PrimExpr | None:
        return self._choose(node.a >= node.b, node.a, node.b)

    def visit_select(self, node: Select) -> PrimExpr | None:
        return self._choose(node.condition, node.true_value, node.false_value)

    def _choose(self, condition: PrimExpr, one: PrimExpr, other: PrimExpr) -> PrimExpr | None:
        a, b = self.visit(one), self.visit(other)
        if a is None and b is None:
            return None
        zero = operators.const(0, one.dtype)
        return Select(condition, zero if a is None else a, zero if b is None else b)

    def visit_cast(self, node: Cast) -> PrimExpr | None:
        inner = self.visit(node.value)
        return None if inner is None else operators.cast(node.dtype, inner)

    def visit_let(self, node: Let) -> PrimExpr | None:
        return self.visit(substitute_expr(node.body, {node.var: node.value}))

    def visit_call(self, node: Call) -> PrimExpr | None:
        name = node.op.name.removeprefix("tir.")
        if name == "if_then_else":
            condition, one, other = node.args
            a, b = self.visit(one), self.visit(other)
            if a is None and b is None:
                return None
            zero = operators.const(0, node.dtype)
            return op.if_then_else(condition, zero if a is None else a, zero if b is None else b)
        inner = [self.visit(argument) for argument in node.args]
        if all(one is None for one in inner) or name in _FLAT:
            return None
        if name in _TRANSPARENT:
            return inner[0]
        if name not in RULES:
            raise ExpressionError(f"there is no rule for the derivative of {name}: {node}")
        total: PrimExpr | None = None
        for partial, derivative in zip(RULES[name](*node.args), inner, strict=True):
            if derivative is not None:
                term = times(partial, derivative)
                total = term if total is None else total + term
        return total


def times(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A product; one is dropped and so is zero, which for derivatives means that nothing depends."""
    return a if is_const(b, 1) else b if is_const(a, 1) else a * b


def derivative(expr: PrimExpr, element: ProducerLoad) -> PrimExpr | None:
    """The derivative of an expression by an element that it reads; None for zero."""
    return _Derivative(element).visit(expr)
