"""Partitions loops so that most iterations need not check their conditions.

Only conditions marked ``likely`` count: those that a schedule adds where a split does not divide the extent. For each
loop the pass finds the iterations for which such a condition holds in all iterations of the inner loops. Then

* a loop whose whole body is guarded skips the iterations in which the condition cannot hold, and drops the condition if
  it does not depend on inner loops;
* otherwise the loop becomes up to three, before, within and after those iterations, and the one within does not check.

In a loop with the pragma ``loop_partition_hint`` every condition of a branch or a choice counts.

A loop of constant extent is only partitioned on request. A parallel loop stays one loop, so that its iterations still
spread evenly over the threads, and a thread index has no iterations to move: there the body is duplicated, once under a
condition that makes the checks redundant. For a parallel loop that was fused from several, conditions on one of those
also count: a quotient or a remainder of its variable, or one of these.

Iterations that were left over at the border of an image are few, and each further split would write their body three
times. Loops in them whose conditions only guard loads stay whole: inner loops that are unrolled still drop the checks
of all elements but those at the edge. A condition that holds for all of an iteration or for nothing in it, such as one
on the row that a tap of a kernel reads, is a branch around the body of that iteration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tilewright.arith import Analyzer, eval_int_set
from tilewright.ir import operators
from tilewright.ir.expr import (
    Call,
    FloorDiv,
    FloorMod,
    IntImm,
    PrimExpr,
    Var,
    is_const,
)
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import (
    NO_OP,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.loop_conditions import (
    LIKELY,
    ConditionCollector,
    Fails,
    Holds,
    LikelyMemo,
    LoopCondition,
    Ranges,
    bare,
    fused_parts,
    inequalities,
    linear_part,
    part_count,
)
from tilewright.tir.transform.lib.statement_rewriter import (
    StmtMutator,
    bind_range,
    thread_axis,
    with_one_definition,
)

_HINT = "pragma_loop_partition_hint"


@dataclass(frozen=True, slots=True)
class _Choices:
    """Which loops may be split."""

    constant_loops: bool
    constant_threads: bool
    keep_single_iterations: bool
    from_zero: bool = False


@dataclass(slots=True)
class _Iterations:
    """Iterations ``start .. end`` (the end left out) for which the conditions in ``holds`` are true."""

    start: PrimExpr
    end: PrimExpr
    holds: list[PrimExpr]


class _Partitioner(StmtMutator):
    def __init__(self, choices: _Choices) -> None:
        super().__init__()
        self.choices = choices
        self.analyzer = Analyzer()
        self.hinted = False
        self.changed = False
        self.defined: set[Var] = set()
        self.likely: LikelyMemo = {}
        self.double_buffers = False
        self.is_border = False
        """Inside of iterations that were left over."""
        self.has_threads = False
        """Under a thread index: threads must run through the same loops, or they miss each other at barriers."""

    # Loops

    def visit_for(self, node: For) -> Stmt:
        hinted, self.hinted = self.hinted, False
        constant = isinstance(node.min, IntImm) and isinstance(node.extent, IntImm)
        if self.double_buffers and _refills_buffer(node.body):
            # The loop fills the buffer for its next iteration, so it stays one loop.
            return self._with_body(node)
        if node.kind != ForKind.THREAD_BINDING and (hinted or not constant or self.choices.constant_loops):
            tightened = self._tighten(node, hinted)
            if tightened is None:
                return NO_OP
            node = tightened
            loads = self._border_loads(node, hinted)
            whole = bool(loads) and hinted and not any(one.is_uniform for one in loads)
            split = None if whole else self._split(node, hinted, needs_constants=bool(loads))
            if split is None and loads:
                split = self._branch(node, loads)
            if split is not None:
                return split
        return self._with_body(node)

    def _with_body(self, node: For) -> Stmt:
        """The loop with what is inside it partitioned."""
        bind_range(self.analyzer, node.loop_var, node.min, node.extent)
        body = self.visit(node.body)
        return node if body is node.body else node.replace(body=body)

    def _border_loads(self, node: For, hinted: bool) -> list[LoopCondition]:
        """The conditions of a loop in a border, if there are any and they only guard loads."""
        if not self.is_border or self.has_threads or node.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return []
        found = self._collect(node, hinted).conditions
        return found if all(one.is_likely and not one.guards_statement for one in found) else []

    def _branch(self, node: For, conditions: Sequence[LoopCondition]) -> Stmt | None:
        """The loop with a branch on the conditions that each iteration meets as a whole, or fails."""
        uniform = _equal_ones([one.condition for one in conditions if one.is_uniform])
        if not uniform or not _has_scalar_loops(node.body):
            return None
        self.changed = True
        bind_range(self.analyzer, node.loop_var, node.min, node.extent)
        free = Holds([one for group in uniform for one in group]).visit(node.body)
        rest = Fails(uniform).visit(node.body)
        condition = reduce(operators.logical_and, (bare(group[0]) for group in uniform))
        free, rest = (self.visit(with_one_definition(part, self.defined)) for part in (free, rest))
        return node.replace(body=IfThenElse(condition, free, rest))

    def _collect(self, node: For, hinted: bool) -> ConditionCollector:
        collector = ConditionCollector(node.loop_var, hinted, self.likely)
        collector.walk(node.body, True)
        return collector

    def _tighten(self, node: For, hinted: bool) -> For | None:
        """The loop without the iterations in which its whole body is guarded away; None if none is left."""
        guards = [found for found in self._collect(node, hinted).conditions if found.guards_all]
        found = self._iterations(node.loop_var, node.min, node.extent, guards, possible=True)
        if found is None:
            return node
        exact = [
            condition
            for condition, ranges, *_ in guards
            if any(condition is solved for solved in found.holds)
            and not any(inner in ranges for inner in post_order(condition) if isinstance(inner, Var))
        ]
        extent = self.analyzer.simplify(operators.subtract(found.end, found.start))
        needs_constant = node.kind in (ForKind.VECTORIZED, ForKind.UNROLLED)
        if isinstance(extent, IntImm):
            if extent.value <= 0:
                self.changed = True
                return None
        elif needs_constant:
            return node
        if expr_deep_equal(extent, node.extent) and not exact:
            return node
        self.changed = True
        return node.replace(min=found.start, extent=extent, body=Holds(exact).visit(node.body))

    def _split(self, node: For, hinted: bool, needs_constants: bool) -> Stmt | None:
        """The loop as up to three, of constant extents if that is needed; None if it stays whole."""
        conditions = self._collect(node, hinted).conditions
        found = self._iterations(node.loop_var, node.min, node.extent, conditions)
        if found is None or self.analyzer.can_prove(operators.less_equal(found.end, found.start)):
            return self._split_fused(node, conditions) if node.kind == ForKind.PARALLEL else None
        if node.kind == ForKind.PARALLEL:
            return self._two_versions(node, node.loop_var, node.min, node.extent, found)
        end = operators.add(node.min, node.extent)
        parts = [
            (node.min, found.start, node.body),
            (found.start, found.end, Holds(found.holds).visit(node.body)),
            (found.end, end, node.body),
        ]
        needs_constants = needs_constants or node.kind in (ForKind.VECTORIZED, ForKind.UNROLLED)
        if needs_constants and not all(isinstance(bound, IntImm) for part in parts for bound in part[:2]):
            return None
        self.changed = True
        outer, made = self.is_border, []
        for part in parts:
            self.is_border = outer or (node.kind == ForKind.SERIAL and part[2] is node.body)
            made.append(self._part(node, *part))
        self.is_border = outer
        return stmt_seq(NO_OP, *made)

    def _part(self, node: For, start: PrimExpr, end: PrimExpr, body: Stmt) -> Stmt:
        """The iterations ``start .. end`` of a loop, with what is inside partitioned."""
        extent = self.analyzer.simplify(operators.subtract(end, start))
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NO_OP
        # What is known of a variable in one part must not be taken for known in another.
        part = with_one_definition(node.replace(min=start, extent=extent, body=body), self.defined)
        assert isinstance(part, For)
        if isinstance(extent, IntImm) and extent.value == 1 and not self.choices.keep_single_iterations:
            return self.visit(FoldingSubstitute({part.loop_var: start}).visit(part.body))  # type: ignore[no-any-return]
        if self.choices.from_zero and not is_const(start, 0):
            shifted = FoldingSubstitute({part.loop_var: operators.add(part.loop_var, start)}).visit(part.body)
            part = part.replace(min=operators.const(0, start.dtype), body=shifted)
        # What is left of a constant loop is shorter and still checked: it may be split at another condition.
        left_over = body is node.body and isinstance(start, IntImm) and isinstance(extent, IntImm)
        return self.visit_for(part) if left_over else self._with_body(part)

    def _border(self, stmt: Stmt) -> Stmt:
        """What was left over, with what is inside partitioned."""
        outer, self.is_border = self.is_border, True
        made: Stmt = self.visit(stmt)
        self.is_border = outer
        return made

    def _split_fused(self, node: For, conditions: Sequence[LoopCondition]) -> Stmt | None:
        """The loop with a branch on one of those that were fused to it; None if no condition is on only one."""
        if not (isinstance(node.extent, IntImm) and isinstance(node.min, IntImm) and node.min.value == 0):
            return None
        for part in fused_parts(node.loop_var, [found.condition for found in conditions]):
            count = part_count(part, node.extent.value)
            start, extent = (operators.const(value, part.dtype) for value in (0, count))
            found = self._iterations(part, start, extent, conditions)
            if found is not None and not self.analyzer.can_prove(
                operators.less_equal(found.end, found.start)
            ):
                return self._two_versions(node, part, start, extent, found)
        return None

    def _two_versions(
        self, node: For, variable: PrimExpr, start: PrimExpr, extent: PrimExpr, found: _Iterations
    ) -> Stmt:
        """The loop with a branch inside: iterations that need not check, and the others. ``variable`` is the loop's or
        a part of it, with values from ``start``."""
        self.changed = True
        bind_range(self.analyzer, node.loop_var, node.min, node.extent)
        end = operators.add(start, extent)
        inside = self._inside(variable, start, end, found)
        free: Stmt = with_one_definition(Holds(found.holds).visit(node.body), self.defined)
        if isinstance(inside, IntImm):
            return node.replace(body=self.visit(free))
        rest = node.body
        one = operators.equal(operators.subtract(end, found.end), 1)
        if self.analyzer.can_prove(operators.logical_and(operators.equal(found.start, start), one)):
            known = FoldingSubstitute if isinstance(variable, Var) else _FoldingReplace
            rest = known({variable: found.end}).visit(rest)
        rest = with_one_definition(rest, self.defined)
        with self.analyzer.constraint_scope(inside):
            free = self.visit(free)
        with self.analyzer.constraint_scope(operators.logical_not(inside)):
            rest = self._border(rest)
        return node.replace(body=IfThenElse(inside, free, rest))

    def _inside(self, variable: PrimExpr, start: PrimExpr, end: PrimExpr, found: _Iterations) -> PrimExpr:
        """The condition under which a variable of ``start .. end`` is among the iterations that need not check."""
        inside: PrimExpr = operators.const(True, "bool")
        if not self.analyzer.can_prove(operators.equal(found.start, start)):
            inside = operators.logical_and(inside, operators.greater_equal(variable, found.start))
        if not self.analyzer.can_prove(operators.greater_equal(found.end, end)):
            inside = operators.logical_and(inside, operators.less(variable, found.end))
        return inside

    def _iterations(
        self,
        variable: PrimExpr,
        start: PrimExpr,
        extent: PrimExpr,
        conditions: Sequence[LoopCondition],
        possible: bool = False,
    ) -> _Iterations | None:
        """Where the conditions hold for everything inside, or for something if ``possible``.

        Conditions that cannot be solved are left out.
        """
        lowest, highest, holds = start, operators.add(start, extent), []
        for condition, bounds in self._solutions(variable, conditions, possible):
            low, high = lowest, highest
            for is_lower, value in bounds:
                if is_lower:
                    low = operators.maximum(low, value)
                else:
                    high = operators.minimum(high, value)
            # A condition that would leave no iteration stays checked, for the sake of the others.
            if not possible and self.analyzer.can_prove(operators.less_equal(high, low)):
                continue
            lowest, highest = low, high
            holds.append(condition)
        if not holds:
            return None
        end = operators.add(start, extent)
        # The three parts must meet whatever the values are: no iteration twice, none left out.
        first = self.analyzer.simplify(operators.minimum(lowest, end))
        last = self.analyzer.simplify(operators.maximum(highest, first))
        return _Iterations(first, last, holds)

    def _solutions(
        self, variable: PrimExpr, conditions: Sequence[LoopCondition], possible: bool
    ) -> list[tuple[PrimExpr, list[tuple[bool, PrimExpr]]]]:
        """The conditions that can be solved, each with all its bounds on the variable.

        One condition may occur at several places: it is removed at all of them or at none, so all must be solved.
        """
        found: dict[int, tuple[PrimExpr, list[tuple[bool, PrimExpr]]]] = {}
        unsolved: set[int] = set()
        for condition, ranges, *_ in conditions:
            solved = [self._solve(variable, part, ranges, possible) for part in inequalities(condition)]
            known = [bound for bound in solved if bound is not None]
            if not known or len(known) < len(solved):
                unsolved.add(id(condition))
            else:
                found.setdefault(id(condition), (condition, []))[1].extend(known)
        return [entry for key, entry in found.items() if key not in unsolved]

    def _solve(
        self, variable: PrimExpr, nonnegative: PrimExpr, ranges: Ranges, possible: bool
    ) -> tuple[bool, PrimExpr] | None:
        """A bound on the variable, (is a lower one, value), outside which the expression may be negative.

        With ``possible``: outside which it is always negative.
        """
        values = eval_int_set(nonnegative, ranges, self.analyzer)
        if not (values.has_upper_bound if possible else values.has_lower_bound):
            return None
        found = linear_part(values.max_value if possible else values.min_value, variable)
        if found is None or found[0] == 0:
            return None
        factor, rest = found
        divisor = operators.const(abs(factor), rest.dtype)
        if factor > 0:
            return True, operators.negative(operators.floordiv(rest, divisor))
        return False, operators.floordiv(operators.add(rest, divisor), divisor)

    # Threads and hints

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == _HINT:
            self.hinted = True
            self.changed = True
            return self.visit(node.body)  # type: ignore[no-any-return]
        axis = thread_axis(node)
        if axis is None:
            return node.map_children(self.visit)
        start: PrimExpr = operators.const(0, axis.var.dtype)
        extent = operators.cast(axis.var.dtype, node.value)
        body = node.body
        if not isinstance(extent, IntImm) or self.choices.constant_threads:
            body = self._split_thread(axis.var, start, extent, body)
        bind_range(self.analyzer, axis.var, start, extent)
        outer = self.choices, self.has_threads
        # Only what was requested.
        self.choices = dataclasses.replace(self.choices, constant_loops=self.choices.constant_threads)
        self.has_threads = True
        made: Stmt = self.visit(body)
        self.choices, self.has_threads = outer
        return node if made is node.body else node.replace(body=made)

    def _split_thread(self, variable: Var, start: PrimExpr, extent: PrimExpr, body: Stmt) -> Stmt:
        collector = ConditionCollector(variable, False, self.likely)
        collector.walk(body, True)
        found = self._iterations(variable, start, extent, collector.conditions)
        if found is None or self.analyzer.can_prove(operators.less_equal(found.end, found.start)):
            return body
        inside = self._inside(variable, start, extent, found)
        self.changed = True
        return _UnderThreads(found.holds, inside).visit(body)  # type: ignore[no-any-return]


class _UnderThreads(StmtMutator):
    """Writes the body below the innermost thread index twice: without the checks, and with them."""

    def __init__(self, holds: Sequence[PrimExpr], inside: PrimExpr) -> None:
        super().__init__()
        self.holds = holds
        self.inside = inside

    def visit(self, node: Any) -> Any:
        if isinstance(node, Stmt) and _has_threads(node):
            return super().visit(node)
        if not isinstance(node, Stmt):
            return node
        free: Stmt = Holds(self.holds).visit(node)
        if free is node or isinstance(self.inside, IntImm):
            return free
        return IfThenElse(self.inside, free, node)


class _FoldingReplace(FoldingSubstitute):
    """Replaces one quotient or remainder by a value."""

    def __init__(self, known: Mapping[PrimExpr, PrimExpr]) -> None:
        super().__init__({})
        ((self.part, self.value),) = known.items()

    def visit_floor_div(self, node: FloorDiv) -> PrimExpr:
        return self.value if expr_deep_equal(node, self.part) else super().visit_floor_div(node)

    def visit_floor_mod(self, node: FloorMod) -> PrimExpr:
        return self.value if expr_deep_equal(node, self.part) else super().visit_floor_mod(node)


def _equal_ones(conditions: Sequence[PrimExpr]) -> list[list[PrimExpr]]:
    """The conditions, in groups of those that are the same."""
    groups: list[list[PrimExpr]] = []
    for condition in conditions:
        for group in groups:
            if expr_deep_equal(group[0], condition):
                group.append(condition)
                break
        else:
            groups.append([condition])
    return groups


def _has_scalar_loops(stmt: Stmt) -> bool:
    """True if there are loops inside other than over the lanes of vectors."""
    return any(isinstance(found, For) and found.kind != ForKind.VECTORIZED for found in statements_in(stmt))


def _has_threads(stmt: Stmt) -> bool:
    return any(
        isinstance(found, AttrStmt) and found.attr_key == "thread_extent" for found in statements_in(stmt)
    )


def _refills_buffer(stmt: Stmt) -> bool:
    """True if a double-buffered buffer is filled somewhere inside."""
    return any(
        isinstance(found, AttrStmt) and found.attr_key == "double_buffer_scope"
        for found in statements_in(stmt)
    )


def _is_reason(node: Any) -> bool:
    """True for what makes a loop be split."""
    return (isinstance(node, Call) and node.op is LIKELY) or (
        isinstance(node, AttrStmt) and node.attr_key == _HINT
    )


def partition_loops(
    stmt: Stmt,
    partition_const_loop: bool = False,
    no_unroll_loop_with_extent_one: bool = False,
    partition_const_thread: bool | None = None,
    from_zero: bool = False,
) -> Stmt:
    """The statement with its loops split at likely conditions; see the module's text."""
    if not any(_is_reason(found) for found in post_order(stmt)):
        return stmt
    threads = partition_const_loop if partition_const_thread is None else partition_const_thread
    partitioner = _Partitioner(
        _Choices(partition_const_loop, threads, no_unroll_loop_with_extent_one, from_zero)
    )
    partitioner.double_buffers = _refills_buffer(stmt)
    made: Stmt = partitioner.visit(stmt)
    return with_one_definition(made) if partitioner.changed else stmt


@dataclass(frozen=True)
class LoopPartition(PrimFuncPass):
    """Splits loops at likely conditions; ``tir.LoopPartition`` in the context says which.

    ``constant_loops`` is what holds where the context does not say: whether serial loops of constant extent are split.
    With ``from_zero`` every part of a loop counts from zero; otherwise it keeps the values that it had.
    """

    constant_loops: bool = False
    from_zero: bool = True

    name = "tir.LoopPartition"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        options = context.get("tir.LoopPartition")
        said = "tir.LoopPartition" in context.config
        body = partition_loops(
            function.body,
            options.partition_const_loop if said else self.constant_loops,
            options.no_unroll_loop_with_extent_one,
            options.partition_const_loop,
            self.from_zero,
        )
        return function.with_body(body)
