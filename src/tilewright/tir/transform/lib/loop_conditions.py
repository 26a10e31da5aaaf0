"""The conditions that loops are partitioned at: which there are in a loop, what they say of its variable, and the body
where they hold or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tilewright.arith import IntervalSet, IntSet
from tilewright.ir import operators
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    Call,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    PrimExpr,
    Select,
    Sub,
    Var,
)
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.op import Op
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.stmt import NO_OP, Allocate, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt
from tilewright.tir.transform.lib.statement_rewriter import thread_axis

LIKELY = Op.register("tir.likely")
_IF_THEN_ELSE = Op.register("tir.if_then_else")

Ranges = Mapping[Var, IntervalSet]
"""The ranges of the variables defined between a loop and a condition."""


LikelyMemo = dict[int, tuple[Any, list[tuple[PrimExpr, set[int]]]]]
"""From an expression to the likely conditions in it, each with the variables it uses."""


def _likely_in(expr: Any, memo: LikelyMemo) -> list[tuple[PrimExpr, set[int]]]:
    found = memo.get(id(expr))
    if found is None:
        conditions: list[tuple[PrimExpr, set[int]]] = [
            (part, {id(inner) for inner in post_order(part) if isinstance(inner, Var)})
            for part in post_order(expr)
            if isinstance(part, Call) and part.op is LIKELY
        ]
        found = memo[id(expr)] = (expr, conditions)
    return found[1]


class LoopCondition(NamedTuple):
    """A condition, the ranges of the variables defined between the loop and it, and what it decides."""

    condition: PrimExpr
    ranges: Ranges
    guards_all: bool
    """It guards the whole body of the loop."""
    guards_statement: bool
    """It guards a statement, not a choice of a value."""

    @property
    def is_likely(self) -> bool:
        """It mostly holds; others count in loops with the hint."""
        return isinstance(self.condition, Call) and self.condition.op is LIKELY

    @property
    def is_uniform(self) -> bool:
        """It holds for all of an iteration, or for nothing in it."""
        return not any(isinstance(one, Var) and one in self.ranges for one in post_order(self.condition))


class ConditionCollector:
    """Finds likely conditions that use a variable."""

    def __init__(self, variable: Var, any_condition: bool, memo: LikelyMemo) -> None:
        self.variable = variable
        self.any_condition = any_condition
        self.memo = memo
        self.conditions: list[LoopCondition] = []
        self.ranges: dict[Var, IntervalSet] = {}

    def walk(self, stmt: Stmt, guards_all: bool) -> None:
        """``guards_all``: nothing else is between the loop and this statement."""
        if isinstance(stmt, IfThenElse):
            self._conditions(stmt.condition, guards_all and stmt.else_case is None, as_guard=True)
            self.walk(stmt.then_case, guards_all and stmt.else_case is None)
            if stmt.else_case is not None:
                self.walk(stmt.else_case, False)
            return
        alone = guards_all and not isinstance(stmt, SeqStmt)
        for child in stmt.children():
            if isinstance(child, Stmt):
                continue
            self._conditions(child, False, as_guard=False)
        if isinstance(stmt, For):
            self.ranges[stmt.loop_var] = interval(stmt.min, stmt.extent)
        elif isinstance(stmt, LetStmt):
            self.ranges[stmt.var] = IntSet.everything()
            alone = False
        elif isinstance(stmt, AttrStmt) and (axis := thread_axis(stmt)) is not None:
            self.ranges[axis.var] = interval(operators.const(0, stmt.value.dtype), stmt.value)
        elif not isinstance(stmt, (AttrStmt, Allocate)):
            alone = False
        for child in stmt.children():
            if isinstance(child, Stmt):
                self.walk(child, alone)

    def _conditions(self, expr: Any, guards_all: bool, as_guard: bool) -> None:
        for part in conjuncts(expr) if as_guard else [expr]:
            if self.any_condition and as_guard and any(found is self.variable for found in post_order(part)):
                self.conditions.append(LoopCondition(part, dict(self.ranges), guards_all, True))
                continue
            if self.any_condition and not as_guard:
                self._choices_in(part)
            for condition, variables in _likely_in(part, self.memo):
                if id(self.variable) in variables:
                    all_of_body = guards_all and condition is part
                    self.conditions.append(LoopCondition(condition, dict(self.ranges), all_of_body, as_guard))

    def _choices_in(self, expr: Any) -> None:
        """The conditions of the choices that an expression makes."""
        for part in post_order(expr):
            if isinstance(part, Select):
                condition = part.condition
            elif isinstance(part, Call) and part.op is _IF_THEN_ELSE:
                condition = part.args[0]
            else:
                continue
            for one in conjuncts(condition):
                if any(found is self.variable for found in post_order(one)):
                    self.conditions.append(LoopCondition(one, dict(self.ranges), False, False))


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that must all hold."""
    parts, waiting = [], [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And):
            waiting += [part.b, part.a]
        else:
            parts.append(part)
    return parts


class Holds(Mutator):
    """Replaces conditions by true, and removes the branches that this decides."""

    memoize = True

    def __init__(self, conditions: Sequence[PrimExpr]) -> None:
        super().__init__()
        self.conditions = {id(condition) for condition in conditions}

    def visit(self, node: Any) -> Any:
        return operators.const(True, "bool") if id(node) in self.conditions else super().visit(node)

    def visit_and(self, node: And) -> PrimExpr:
        return operators.logical_and(self.visit(node.a), self.visit(node.b))

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        made: IfThenElse = node.map_children(self.visit)
        if not isinstance(made.condition, IntImm):
            return made
        return made.then_case if made.condition.value else made.else_case or NO_OP


class Fails(Mutator):
    """Replaces guards that need all of some conditions by false. Each condition is given as the objects that say it."""

    memoize = True

    def __init__(self, conditions: Sequence[Sequence[PrimExpr]]) -> None:
        super().__init__()
        self.conditions = [{id(one) for one in group} for group in conditions]

    def visit_and(self, node: And) -> PrimExpr:
        return self._failed(node)

    def visit_call(self, node: Call) -> PrimExpr:
        return self._failed(node)

    def _failed(self, node: PrimExpr) -> PrimExpr:
        needed = {id(part) for part in conjuncts(node)}
        if all(not group.isdisjoint(needed) for group in self.conditions):
            return operators.const(False, "bool")
        return node.map_children(self.visit)


def interval(start: PrimExpr, extent: PrimExpr) -> IntervalSet:
    return IntSet.interval(start, operators.add(start, operators.subtract(extent, 1)))


def fused_parts(variable: Var, conditions: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The variables in conditions that were fused to one: its quotients and remainders by constants, and those of
    these."""
    parts: list[PrimExpr] = []
    for condition in conditions:
        for found in post_order(condition):
            if not (isinstance(found, PrimExpr) and _is_part(found, variable)):
                continue
            if not any(expr_deep_equal(found, part) for part in parts):
                parts.append(found)
    return parts


def _is_part(expr: PrimExpr, variable: Var) -> bool:
    while isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.b, IntImm) and expr.b.value > 0:
        expr = expr.a
        if expr is variable:
            return True
    return False


def part_count(part: PrimExpr, extent: int) -> int:
    """How many values a part has of a variable of ``extent`` values."""
    if not isinstance(part, (FloorDiv, FloorMod)):
        return extent
    whole, divisor = part_count(part.a, extent), int(part.b.value)  # type: ignore[attr-defined]
    return -(-whole // divisor) if isinstance(part, FloorDiv) else min(whole, divisor)


def linear_part(expr: PrimExpr, variable: PrimExpr) -> tuple[int, PrimExpr] | None:
    """``expr`` as ``factor * variable + rest`` with a constant factor; None if it is not of that form. ``variable`` may
    be a part of one."""
    if expr is variable or (not isinstance(variable, Var) and expr_deep_equal(expr, variable)):
        return 1, operators.const(0, expr.dtype)
    if isinstance(expr, (Add, Sub)):
        left, right = linear_part(expr.a, variable), linear_part(expr.b, variable)
        if left is None or right is None:
            return None
        if isinstance(expr, Add):
            return left[0] + right[0], operators.add(left[1], right[1])
        return left[0] - right[0], operators.subtract(left[1], right[1])
    if isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        found = linear_part(expr.a, variable)
        return None if found is None else (found[0] * expr.b.value, operators.multiply(found[1], expr.b))
    root = variable
    while isinstance(root, (FloorDiv, FloorMod)):
        root = root.a
    return None if any(found is root for found in post_order(expr)) else (0, expr)


def bare(condition: PrimExpr) -> PrimExpr:
    """The condition without the word that it mostly holds."""
    return condition.args[0] if isinstance(condition, Call) and condition.op is LIKELY else condition


def inequalities(condition: PrimExpr) -> list[PrimExpr]:
    """Expressions that are not negative exactly where the condition holds; none if it is of another form."""
    found: list[PrimExpr] = []
    for part in conjuncts(bare(condition)):
        if not isinstance(part, (LT, LE, GT, GE, EQ)) or not part.a.dtype.is_int or part.a.dtype.lanes != 1:
            return []
        if isinstance(part, (LT, LE, EQ)):
            difference = operators.subtract(part.b, part.a)
            found.append(operators.subtract(difference, 1) if isinstance(part, LT) else difference)
        if isinstance(part, (GT, GE, EQ)):
            difference = operators.subtract(part.a, part.b)
            found.append(operators.subtract(difference, 1) if isinstance(part, GT) else difference)
    return found
