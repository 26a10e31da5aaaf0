"""Congruences of integer expressions: ``value = coeff * k + base`` for some integer ``k``.

``(0, b)`` is the constant ``b``; ``(1, 0)`` is any integer; otherwise ``0 <= base < coeff``. Only index types
(int32 and int64, and vectors of them) are analysed, because arithmetic of the others may wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from tilewright.arith.const_int_bound import BoundAnalyzer
from tilewright.arith.pool import Expr
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    SizeVar,
    Sub,
    Var,
)

Modular = tuple[int, int]
"""Coefficient and base."""

ANY: Modular = (1, 0)


@dataclass(slots=True)
class ModularSet:
    """The integers that leave the remainder ``base`` when divided by ``coeff``; 0 stands for the constant ``base``."""

    coeff: int
    base: int


def normal(coeff: int, base: int) -> Modular:
    """The pair with its base in range."""
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def union(a: Modular, b: Modular) -> Modular:
    """The finest congruence that holds for the values of both."""
    return normal(gcd(a[0], b[0], a[1] - b[1]), a[1])


def intersect(a: Modular, b: Modular) -> Modular:
    """A congruence for values for which both hold; the Chinese remainder theorem.

    ``a`` itself if none satisfies both.
    """
    if a[0] == 0 or b[0] == 0:
        return a if a[0] == 0 else b
    common = gcd(a[0], b[0])
    if (b[1] - a[1]) % common:
        return a
    step = b[0] // common
    lift = ((b[1] - a[1]) // common * pow(a[0] // common, -1, step)) % step if step > 1 else 0
    return normal(a[0] * step, a[1] + a[0] * lift)


class ModularAnalyzer:
    """Computes congruences. ``memo`` and ``facts`` belong to the present scope."""

    __slots__ = ("bounds", "facts", "memo", "variables")

    def __init__(self, bounds: BoundAnalyzer) -> None:
        self.bounds = bounds
        self.variables: dict[Var, Modular] = {}
        self.facts: dict[Expr, Modular] = {}
        self.memo: dict[Expr, Modular] = {}

    def modular(self, node: Expr) -> Modular:
        """The congruence of an interned expression."""
        found = self.memo.get(node)
        if found is not None:
            return found
        dtype = node.dtype
        handler = _HANDLERS.get(type(node)) if dtype.is_int and dtype.bits >= 32 else None
        made = ANY if handler is None else handler(self, node)
        if self.facts:
            fact = self.facts.get(node)
            if fact is not None:
                made = intersect(made, fact)
        self.memo[node] = made
        return made

    def _var(self, node: Var) -> Modular:
        return self.variables.get(node, ANY)

    def _integer(self, node: IntImm) -> Modular:
        return 0, node.value

    def _add(self, node: Add) -> Modular:
        a, b = self.modular(node.a), self.modular(node.b)
        return normal(gcd(a[0], b[0]), a[1] + b[1])

    def _sub(self, node: Sub) -> Modular:
        a, b = self.modular(node.a), self.modular(node.b)
        return normal(gcd(a[0], b[0]), a[1] - b[1])

    def _mul(self, node: Mul) -> Modular:
        a, b = self.modular(node.a), self.modular(node.b)
        return normal(gcd(a[0] * b[0], a[0] * b[1], a[1] * b[0]), a[1] * b[1])

    def _quotient(self, node: Expr, exact_only: bool) -> Modular:
        """A quotient by a constant that divides the coefficient."""
        coeff, base = self.modular(node.a)
        divisor = self.modular(node.b)
        if divisor[0] != 0 or divisor[1] == 0 or coeff % divisor[1]:
            return ANY
        if exact_only and base % divisor[1]:
            return ANY
        return normal(coeff // divisor[1], base // divisor[1])

    def _div(self, node: Div) -> Modular:
        # Truncation is the floor where the dividend is not negative and the divisor positive.
        positive = self.bounds.bound(node.a)[0] >= 0 and self.bounds.bound(node.b)[0] > 0
        return self._quotient(node, exact_only=not positive)

    def _floor_div(self, node: FloorDiv) -> Modular:
        return self._quotient(node, exact_only=False)

    def _remainder(self, node: Expr) -> Modular:
        """The remainder differs from the dividend by a multiple of the divisor."""
        coeff, base = self.modular(node.a)
        divisor = self.modular(node.b)
        if divisor[0] != 0 or divisor[1] == 0:
            return normal(gcd(coeff, *divisor), base)
        if coeff == 0 and type(node) is FloorMod:
            return 0, base % divisor[1]
        return normal(gcd(coeff, divisor[1]), base)

    def _either(self, node: Expr) -> Modular:
        return union(self.modular(node.a), self.modular(node.b))

    def _select(self, node: Select) -> Modular:
        return union(self.modular(node.true_value), self.modular(node.false_value))

    def _cast(self, node: Cast) -> Modular:
        # Between index types a cast keeps the value, because index values fit either.
        return self.modular(node.value)

    def _broadcast(self, node: Broadcast) -> Modular:
        return self.modular(node.value)

    def _ramp(self, node: Ramp) -> Modular:
        base, stride = self.modular(node.base), self.modular(node.stride)
        return normal(gcd(base[0], *stride), base[1])

    def _let(self, node: Let) -> Modular:
        self.variables[node.var] = self.modular(node.value)
        return self.modular(node.body)

    def _call(self, node: Call) -> Modular:
        name = getattr(node.op, "name", "")
        if name == "tir.likely":
            return self.modular(node.args[0])
        if name == "tir.if_then_else":
            return union(self.modular(node.args[1]), self.modular(node.args[2]))
        if name not in ("tir.shift_left", "tir.shift_right", "tir.bitwise_and"):
            return ANY
        coeff, base = self.modular(node.args[0])
        factor, amount = self.modular(node.args[1])
        if factor != 0 or not 0 <= amount < (1 << 62):
            return ANY
        if name == "tir.bitwise_and":
            # Masking with ones in the low places is a remainder.
            return normal(gcd(coeff, amount + 1), base) if amount & (amount + 1) == 0 else ANY
        if amount > 62:
            return ANY
        if name == "tir.shift_left":
            return normal(coeff << amount, base << amount)
        return normal(coeff >> amount, base >> amount) if coeff % (1 << amount) == 0 else ANY


_HANDLERS: dict[type, Callable[[ModularAnalyzer, Expr], Modular]] = {
    Var: ModularAnalyzer._var,
    SizeVar: ModularAnalyzer._var,
    IntImm: ModularAnalyzer._integer,
    Add: ModularAnalyzer._add,
    Sub: ModularAnalyzer._sub,
    Mul: ModularAnalyzer._mul,
    Div: ModularAnalyzer._div,
    FloorDiv: ModularAnalyzer._floor_div,
    Mod: ModularAnalyzer._remainder,
    FloorMod: ModularAnalyzer._remainder,
    Min: ModularAnalyzer._either,
    Max: ModularAnalyzer._either,
    Select: ModularAnalyzer._select,
    Cast: ModularAnalyzer._cast,
    Broadcast: ModularAnalyzer._broadcast,
    Ramp: ModularAnalyzer._ramp,
    Let: ModularAnalyzer._let,
    Call: ModularAnalyzer._call,
}
