"""Turns the pragma ``prefetch_next_panel`` of a reduction's innermost loop into prefetches of the next panel.

The loops of a reduction read a panel of weights from end to end, once for every tile of rows around them; then the
enclosing loop moves to the next panel. The hardware prefetcher follows sequential reads, but cannot predict the jump to
the next panel, whose first pass would then miss the cache. So every iteration prefetches its share of the next panel
into L2.

The pragma's value, if it has one, is the most cache lines that an iteration of the enclosing loop may prefetch: with no
more, the prefetches are there, and the reduction's loop has none.

If a tile is several panels wide, each panel is prefetched. Nothing is done if the elements of a panel are not
contiguous in memory, or are read only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, Load, PrimExpr, Ramp, Var
from tilewright.ir.functor import post_order, substitute_expr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import AttrStmt, Evaluate, For, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

PRAGMA = "pragma_prefetch_next_panel"

SECOND_CACHE = 2
"""The locality argument of LLVM's prefetch: 3 is L1."""

MOST_LINES = 2
"""Cache lines of a panel that one iteration of a non-innermost loop may prefetch."""


@dataclass(frozen=True)
class _Panel:
    """Loads of one buffer in the marked loop, and the loops around them: those that read the panel, those that read it
    again, and the one that goes to the next. There is a panel at each of ``starts``; ``length`` is in elements."""

    load: Load
    starts: Sequence[PrimExpr]
    reading: Sequence[For]
    repeating: Sequence[For]
    following: For
    length: int
    most_around: int = 0

    def hints(self, line_bytes: int) -> tuple[Var, list[Stmt]]:
        """A loop, by its variable, and what one of its iterations prefetches: as many cache lines as make a whole panel
        over all of them. It is the outermost loop with enough iterations to prefetch only a few lines in each."""
        line = max(line_bytes // max(self.load.dtype.bits // 8, 1), 1)

        loops = (*self.reading, *self.repeating)

        def share(inside: int) -> int:
            return -(-self.length // prod(_count(loop) for loop in loops[inside:]))

        few = [inside for inside in range(len(self.reading)) if share(inside) <= MOST_LINES * line]
        if self.repeating and share(len(self.reading)) <= self.most_around * line:
            few.append(len(self.reading))
        inside = max(few, default=0)
        step = share(inside)
        lines = -(-step // line)
        number: PrimExpr = operators.const(0, self.following.loop_var.dtype)
        for loop in reversed(loops[inside:]):
            number = operators.add(
                operators.multiply(number, _count(loop)), operators.subtract(loop.loop_var, loop.min)
            )
        # The last panel has none after it, and the last iterations have nothing left to prefetch.
        last = operators.subtract(operators.add(self.following.min, self.following.extent), 1)
        after = operators.minimum(operators.add(self.following.loop_var, 1), last)
        within = operators.minimum(operators.multiply(number, step), max(self.length - lines * line, 0))
        found: list[Stmt] = []
        for start in self.starts:
            following = substitute_expr(start, {self.following.loop_var: after})
            first = Analyzer().simplify(operators.add(following, within))
            found += [self._hint(operators.add(first, count * line)) for count in range(lines)]
        return loops[inside].loop_var, found

    def _hint(self, index: PrimExpr) -> Stmt:
        place = Load(self.load.dtype.element, self.load.buffer_var, index)
        address = operators.call("address_of", "handle", [place])
        return Evaluate(operators.call("prefetch", place.dtype, [address, 0, SECOND_CACHE, 1]))


def _count(loop: For) -> int:
    assert isinstance(loop.extent, IntImm)
    return int(loop.extent.value)


class _Injector(StmtMutator):
    def __init__(self, line_bytes: int) -> None:
        super().__init__()
        self.line_bytes = line_bytes
        self.loops: list[For] = []
        self.hints: dict[Var, list[Stmt]] = {}

    def visit_for(self, node: For) -> Stmt:
        self.loops.append(node)
        made: For = node.map_children(self.visit)
        self.loops.pop()
        hints = self.hints.pop(node.loop_var, [])
        whole: Stmt = made.replace(body=stmt_seq(*hints, made.body)) if hints else made
        return whole

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != PRAGMA:
            made: Stmt = node.map_children(self.visit)
            return made
        loop = node.body
        panel = _panel([*self.loops, loop]) if isinstance(loop, For) else None
        if panel is not None:
            if isinstance(node.value, IntImm):
                panel = replace(panel, most_around=int(node.value.value))
            variable, hints = panel.hints(self.line_bytes)
            self.hints[variable] = hints
        whole: Stmt = self.visit(loop)
        return whole


def _panel(loops: Sequence[For]) -> _Panel | None:
    """The panel that the innermost of these loops reads, if there is one and it is the only one."""
    around = loops[-2].loop_var if len(loops) > 1 else None
    loads = [
        load
        for load in post_order(loops[-1].body)
        if isinstance(load, Load) and isinstance(load.index, Ramp) and _has(load.index, loops[-1].loop_var)
    ]
    repeated = [load for load in loads if around is None or not _has(load.index, around)] or loads
    if not repeated or any(load.buffer_var is not repeated[0].buffer_var for load in repeated):
        return None
    return _of_loads(repeated, loops)


def _of_loads(loads: Sequence[Load], loops: Sequence[For]) -> _Panel | None:
    index = loads[0].index
    outward = list(reversed(loops))
    moving = [_has(index, loop.loop_var) for loop in outward]
    first_repeating = moving.index(False) if False in moving else len(moving)
    following = moving.index(True, first_repeating) if True in moving[first_repeating:] else len(moving)
    if first_repeating == following or following == len(moving):
        return None
    reading, repeating = outward[:first_repeating], outward[first_repeating:following]
    next_loop = outward[following]
    if not all(isinstance(loop.extent, IntImm) for loop in (*reading, *repeating)):
        return None
    analyzer = Analyzer()
    begin = {loop.loop_var: loop.min for loop in reading}
    ramps = [load.index for load in loads if isinstance(load.index, Ramp) and _is(load.index.stride, 1)]
    if len(ramps) < len(loads):
        return None
    first = substitute_expr(ramps[0].base, begin)
    lanes: dict[int, int] = {}
    for ramp in ramps:
        distance = analyzer.simplify(operators.subtract(substitute_expr(ramp.base, begin), first))
        if not isinstance(distance, IntImm):
            return None
        lanes[int(distance.value)] = ramp.lanes
    runs = _runs(lanes)
    each = runs[0][1]
    starts = [analyzer.simplify(operators.add(first, offset)) for offset, _ in runs]
    after = substitute_expr(starts[0], {next_loop.loop_var: operators.add(next_loop.loop_var, 1)})
    step = analyzer.simplify(operators.subtract(after, starts[0]))
    end = {loop.loop_var: operators.add(loop.min, _count(loop) - 1) for loop in reading}
    span = analyzer.simplify(operators.subtract(substitute_expr(ramps[0].base, end), first))
    length = each * prod(_count(loop) for loop in reading)
    # Read from end to end, all alike, and not the neighbours of what the next one reads.
    if any(size != each for _, size in runs) or not _is(span, length - each):
        return None
    if not (isinstance(step, IntImm) and step.value >= length * len(runs)):
        return None
    return _Panel(loads[0], starts, reading, repeating, next_loop, length)


def _runs(lanes: Mapping[int, int]) -> list[tuple[int, int]]:
    """Vectors, lanes by offset, put together where they are neighbours: the offset and the length of each run."""
    runs: list[tuple[int, int]] = []
    for offset, count in sorted(lanes.items()):
        if runs and sum(runs[-1]) == offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + count)
        else:
            runs.append((offset, count))
    return runs


def _has(expr: PrimExpr, variable: Var) -> bool:
    return any(part is variable for part in post_order(expr))


def _is(expr: PrimExpr, value: int) -> bool:
    return isinstance(expr, IntImm) and expr.value == value


def prefetch_panels(stmt: Stmt, line_bytes: int) -> Stmt:
    """The statement with the hints in its marked loops, and without the marks."""
    marked = any(isinstance(part, AttrStmt) and part.attr_key == PRAGMA for part in statements_in(stmt))
    return _Injector(line_bytes).visit(stmt) if marked else stmt


@dataclass(frozen=True)
class PrefetchPanels(PrimFuncPass):
    """Asks for the next panel of weights while one is used."""

    line_bytes: int = 64
    name = "tir.PrefetchPanels"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(prefetch_panels(function.body, self.line_bytes))
