"""The rewriting simplifier: bottom-up, with the rules of the neighbouring files.

A rule is a smart constructor: it takes simplified, interned operands and returns the simplified node, so that no
subexpression is visited twice. Results are cached per node; a scope in which more is known has a separate cache.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tilewright.arith.const_int_bound import Bound, BoundAnalyzer
from tilewright.arith.modular_set import Modular, ModularAnalyzer
from tilewright.arith.pool import FALSE, TRUE, Expr, NodeClass, Pool
from tilewright.arith.rewrite import addition, comparison, division, logic, minmax, multiplication
from tilewright.ir import operators
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Range,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tilewright.support.dtype import BOOL, DataType

_SCOPED_VISITS = 20_000
"""A graph of nested choices would be met once for each path.

After this many visits inside choices, their conditions are no longer assumed.
"""

Scope = Callable[[Expr], AbstractContextManager[Any]]

_FOLDS: dict[type, Callable[[Any, Any], PrimExpr]] = {
    Add: operators.add,
    Sub: operators.subtract,
    Mul: operators.multiply,
    Div: operators.div,
    Min: operators.minimum,
    Max: operators.maximum,
    EQ: operators.equal,
    NE: operators.not_equal,
    LT: operators.less,
    LE: operators.less_equal,
}


class Rewriter:
    """Simplifies by rules; ``memo`` and ``truths`` belong to the present scope."""

    __slots__ = (
        "bindings", "bound", "make", "memo", "modular", "pool", "ranges", "scope", "scope_depth",
        "scoped_visits", "table", "truths",
    )  # fmt: skip

    def __init__(self, pool: Pool, bounds: BoundAnalyzer, modular: ModularAnalyzer, scope: Scope) -> None:
        self.pool = pool
        self.table = pool.table
        self.make: Callable[[type, Expr, Expr], Expr] = pool.binary
        self.bound: Callable[[Expr], Bound] = bounds.bound
        self.modular: Callable[[Expr], Modular] = modular.modular
        self.scope = scope
        self.scope_depth = 0
        self.scoped_visits = 0
        self.memo: dict[Expr, Expr] = {}
        self.truths: dict[Expr, Expr] = {}
        self.bindings: dict[Var, Expr] = {}
        self.ranges: dict[Var, Range] = {}

    add = addition.add
    sub = addition.sub
    mul = multiplication.mul
    floordiv = division.floordiv
    floormod = division.floormod
    truncdiv = division.truncdiv
    truncmod = division.truncmod
    extremum = minmax.extremum
    minimum = minmax.minimum
    maximum = minmax.maximum
    eq = comparison.eq
    ne = comparison.ne
    lt = comparison.lt
    le = comparison.le
    gt = comparison.gt
    ge = comparison.ge
    logical_not = logic.logical_not
    logical_and = logic.logical_and
    logical_or = logic.logical_or
    select = logic.select

    def adopt(self, node: Expr) -> Expr:
        """The representative of a node whose children are interned."""
        return self.pool.adopt(node)

    def integer(self, dtype: DataType, value: int) -> Expr:
        """The integer constant."""
        return self.pool.integer(dtype, value)

    def fold(self, kind: NodeClass, a: Expr, b: Expr) -> Expr:
        """The result of an operation on two floating-point constants."""
        return self.pool.adopt(_FOLDS[kind](a, b))

    def known(self, condition: Expr) -> Expr:
        """The condition, or the constant that it is known to be in this scope."""
        return self.truths.get(condition, condition) if self.truths else condition

    def broadcast(self, value: Expr, lanes: int) -> Expr:
        """The value in every lane."""
        return self.pool.adopt(Broadcast(value, lanes))

    def ramp(self, base: Expr, stride: Expr, lanes: int) -> Expr:
        """The ramp, a broadcast if its stride is zero."""
        if type(stride) is IntImm and stride.value == 0:
            return self.broadcast(base, lanes)
        return self.pool.adopt(Ramp(base, stride, lanes))

    def cast(self, dtype: DataType, value: Expr) -> Expr:
        """The simplified conversion of a simplified value."""
        if value.dtype is dtype:
            return value
        if type(value) in (IntImm, FloatImm, Broadcast):
            return self.pool.intern(operators.cast(dtype, value))
        if type(value) is Cast and value.value.dtype is dtype and _holds(value.dtype, dtype):
            return value.value
        return self.pool.adopt(Cast(dtype, value))

    def visit(self, node: Expr) -> Expr:
        """The simplified, interned form of any expression."""
        found = self.memo.get(node)
        if found is not None:
            return found
        handler = _HANDLERS.get(type(node))
        made = self._other(node) if handler is None else handler(self, node)
        if self.truths and made.dtype is BOOL:
            made = self.truths.get(made, made)
        memo = self.memo
        memo[node] = made
        memo[made] = made
        if self.scope_depth:
            self.scoped_visits += 1
        return made

    def may_assume(self, condition: Expr) -> bool:
        """True if a condition may still be assumed inside a choice; see ``_SCOPED_VISITS``."""
        return bool(condition.dtype.lanes == 1 and self.scoped_visits <= _SCOPED_VISITS)

    def within(self, condition: Expr, node: Expr) -> Expr:
        """The simplified form of a node where a simplified condition holds."""
        if type(condition) is IntImm or not self.may_assume(condition):
            return self.visit(node)
        self.scope_depth += 1
        try:
            with self.scope(condition):
                return self.visit(node)
        finally:
            self.scope_depth -= 1

    def _other(self, node: Expr) -> Expr:
        return self.pool.adopt(node.map_children(self.visit))

    def _var(self, node: Var) -> Expr:
        return self.bindings.get(node, node) if self.bindings else node

    def _integer(self, node: IntImm) -> Expr:
        return self.pool.adopt(node)

    def _not(self, node: Not) -> Expr:
        return self.logical_not(self.visit(node.a))

    def _cast(self, node: Cast) -> Expr:
        return self.cast(node.dtype, self.visit(node.value))

    def _select(self, node: Select) -> Expr:
        condition = self.visit(node.condition)
        true_value = self.speculated(condition, node.true_value)
        false_value = self.speculated(self.logical_not(condition), node.false_value)
        return self.select(condition, true_value, false_value)

    def speculated(self, condition: Expr, node: Expr) -> Expr:
        """The simplified form of a value that is evaluated whether or not its condition holds.

        The condition may only simplify what cannot fail: the clamp of an index that it implies has to stay, because
        memory is read where the condition does not hold, too.
        """
        return self.visit(node) if self.pool.reads_memory(node) else self.within(condition, node)

    def _broadcast(self, node: Broadcast) -> Expr:
        return self.broadcast(self.visit(node.value), node.lanes)

    def _ramp(self, node: Ramp) -> Expr:
        return self.ramp(self.visit(node.base), self.visit(node.stride), node.lanes)

    def _let(self, node: Let) -> Expr:
        return self.finish_let(node, self.visit)

    def finish_let(self, node: Let, visit: Callable[[Expr], Expr]) -> Expr:
        """A Let with its parts simplified; one that names a constant or a variable is gone."""
        value = visit(node.value)
        if type(value) in (IntImm, FloatImm, Var, SizeVar):
            self.bindings[node.var] = value
            return visit(node.body)
        body = visit(node.body)
        return node if value is node.value and body is node.body else Let(node.var, value, body, node.span)

    def _call(self, node: Call) -> Expr:
        if getattr(node.op, "name", "") == "tir.if_then_else" and len(node.args) == 3:
            condition = self.visit(node.args[0])
            if type(condition) is IntImm:
                return self.visit(node.args[1] if condition.value else node.args[2])
            true_value = self.within(condition, node.args[1])
            false_value = self.within(self.logical_not(condition), node.args[2])
            return self.if_then_else(node, condition, true_value, false_value)
        return self.finish_call(node.map_children(self.visit))

    def if_then_else(self, node: Call, condition: Expr, true_value: Expr, false_value: Expr) -> Expr:
        """The lazy choice with simplified parts; ``node`` is the call that it stands for."""
        if true_value is false_value:
            return true_value
        args = (condition, true_value, false_value)
        changed = any(new is not old for new, old in zip(args, node.args, strict=True))
        return self.pool.adopt(Call(node.dtype, node.op, args, node.span) if changed else node)

    def finish_call(self, node: Call) -> Expr:
        """A call whose arguments are simplified."""
        name = getattr(node.op, "name", "")
        if name == "tir.likely":
            inner = node.args[0]
            return inner if type(inner) is IntImm else self.known_likely(node, inner)
        fold = _CALL_FOLDS.get(name)
        if fold is not None and all(type(argument) is IntImm for argument in node.args):
            return self.pool.adopt(fold(*node.args))
        return self.pool.adopt(node)

    def known_likely(self, node: Call, inner: Expr) -> Expr:
        """``likely(c)`` is the constant that ``c`` is known to be."""
        truth = self.known(inner)
        return truth if truth is TRUE or truth is FALSE else self.pool.adopt(node)


def _holds(wide: DataType, narrow: DataType) -> bool:
    """True if every value of the second integer type is one of the first."""
    if not (wide.is_integral and narrow.is_integral) or wide.is_bool:
        return False
    if wide.is_uint == narrow.is_uint:
        return wide.bits >= narrow.bits
    return wide.is_int and wide.bits > narrow.bits


_CALL_FOLDS: dict[str, Callable[..., PrimExpr]] = {
    "tir.shift_left": operators.left_shift,
    "tir.shift_right": operators.right_shift,
    "tir.bitwise_and": operators.bitwise_and,
    "tir.bitwise_or": operators.bitwise_or,
    "tir.bitwise_xor": operators.bitwise_xor,
    "tir.bitwise_not": operators.bitwise_not,
}

Handler = Callable[[Rewriter, Any], Expr]


def _binary(kind: NodeClass, rule: Callable[[Rewriter, Expr, Expr], Expr]) -> Handler:
    """The handler of a node of two operands."""

    def handler(rw: Rewriter, node: Any) -> Expr:
        old_a, old_b = node.a, node.b
        a, b = rw.visit(old_a), rw.visit(old_b)
        if a is old_a and b is old_b:
            # So that a node on which no rule works stays itself.
            rw.table.setdefault((kind, a, b), node)
        return rule(rw, a, b)

    return handler


BINARY_RULES: dict[type, Callable[[Rewriter, Expr, Expr], Expr]] = {
    Add: addition.add,
    Sub: addition.sub,
    Mul: multiplication.mul,
    Div: division.truncdiv,
    Mod: division.truncmod,
    FloorDiv: division.floordiv,
    FloorMod: division.floormod,
    Min: minmax.minimum,
    Max: minmax.maximum,
    EQ: comparison.eq,
    NE: comparison.ne,
    LT: comparison.lt,
    LE: comparison.le,
    GT: comparison.gt,
    GE: comparison.ge,
    And: logic.logical_and,
    Or: logic.logical_or,
}

_HANDLERS: dict[type, Handler] = {
    Var: Rewriter._var,
    SizeVar: Rewriter._var,
    IntImm: Rewriter._integer,
    Not: Rewriter._not,
    Cast: Rewriter._cast,
    Select: Rewriter._select,
    Broadcast: Rewriter._broadcast,
    Ramp: Rewriter._ramp,
    Let: Rewriter._let,
    Call: Rewriter._call,
}
_HANDLERS.update({kind: _binary(kind, rule) for kind, rule in BINARY_RULES.items()})

__all__ = ["BINARY_RULES", "Rewriter"]
