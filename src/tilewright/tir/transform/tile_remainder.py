"""Computes what a tiled loop of dynamic extent leaves over in smaller tiles.

A schedule that splits an axis of dynamic extent marks the loop around the tiles with the pragma ``tile_remainder``,
whose value is the tile's size. Each statement of the tile is then guarded by ``likely(loop * tile + row < extent)``.
Code that checks its rows one by one, in the innermost loop of a reduction, is many times slower than code that does
not, and code for each number of rows takes long to compile. So the loop becomes several: over whole tiles, then over
tiles of a few rows, then over single rows, none with guards.

Nothing is done if a statement in the loop has no such guard, or if an index depends on the loop other than through
multiples of the tile; the guards then stay, for LoopPartition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import LT, Add, Call, IntImm, Mul, PrimExpr, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import (
    FoldingSubstitute,
    StmtMutator,
    fresh_variable,
    with_one_definition,
)

PRAGMA: Final = "tile_remainder"
ROWS: Final = 2
"""Rows of the smaller tiles: enough for most of the speed of a whole tile, few enough that single rows are rare."""
QUARTER: Final = 4
"""Vectors are followed by quarters of one."""

_LIKELY = Op.register("tir.likely")


class _NotTiled(Exception):
    """Raised for a loop whose statements do not all have the form that is expected."""


class _Guards:
    """Finds the loops over the rows of a tile, by the guards on their variables, and the extent that these name."""

    def __init__(self, variable: Var, tile: int) -> None:
        self.variable = variable
        self.tile = tile
        self.rows: set[Var] = set()
        self.inside: set[Any] = set()
        self.extent: PrimExpr | None = None

    def collect(self, body: Stmt) -> None:
        """Every statement that computes must be below exactly one guard."""
        self.inside = {stmt.loop_var for stmt in post_order(body) if isinstance(stmt, For)}
        stack: list[tuple[Stmt, bool]] = [(body, False)]
        loops: dict[Var, For] = {}
        while stack:
            stmt, guarded = stack.pop()
            if isinstance(stmt, For):
                loops[stmt.loop_var] = stmt
                stack.append((stmt.body, guarded))
            elif isinstance(stmt, IfThenElse):
                is_guard = self._is_guard(stmt)
                if is_guard and guarded:
                    raise _NotTiled
                stack.append((stmt.then_case, guarded or is_guard))
                if stmt.else_case is not None:
                    stack.append((stmt.else_case, guarded))
            elif isinstance(stmt, (SeqStmt, AttrStmt, Allocate, LetStmt)):
                stack += [(child, guarded) for child in stmt.children() if isinstance(child, Stmt)]
            elif not guarded:
                raise _NotTiled
        for row in self.rows:
            loop = loops.get(row)
            if loop is None or not _is(loop.min, 0) or not _is(loop.extent, self.tile):
                raise _NotTiled

    def _is_guard(self, stmt: IfThenElse) -> bool:
        row = self.row_of(stmt.condition)
        if row is None:
            return False
        if stmt.else_case is not None:
            raise _NotTiled
        self.rows.add(row)
        return True

    def row_of(self, condition: PrimExpr) -> Var | None:
        """The row of ``likely(variable * tile + row < extent)``; None for another condition."""
        if not (isinstance(condition, Call) and condition.op is _LIKELY):
            return None
        bare = condition.args[0]
        if not isinstance(bare, LT):
            return None
        terms = _terms(bare.a)
        starts = [term for term in terms if self._is_start(term)]
        rows = [term for term in terms if isinstance(term, Var) and term in self.inside]
        if len(starts) != 1 or len(rows) != 1:
            return None
        limit = bare.b
        for term in terms:
            if term is not starts[0] and term is not rows[0]:
                limit = operators.subtract(limit, term)
        return rows[0] if self._is_extent(limit) else None

    def _is_start(self, expr: PrimExpr) -> bool:
        return isinstance(expr, Mul) and expr.a is self.variable and _is(expr.b, self.tile)

    def _is_extent(self, expr: PrimExpr) -> bool:
        if self.extent is None:
            if any(part is self.variable or part in self.inside for part in post_order(expr)):
                return False
            self.extent = expr
        return expr_deep_equal(self.extent, expr)


class _Smaller(FoldingSubstitute):
    """The body of the loop for tiles of another size, which start at ``start``."""

    def __init__(self, guards: _Guards, start: PrimExpr, size: int) -> None:
        super().__init__({})
        self.guards = guards
        self.start = start
        self.size = size

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        if node.loop_var not in self.guards.rows:
            return made
        return made.replace(extent=operators.const(self.size, node.extent.dtype))

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        if self.guards.row_of(node.condition) is not None:
            return self.visit(node.then_case)  # type: ignore[no-any-return]
        return node.map_children(self.visit)

    def visit_mul(self, node: Mul) -> PrimExpr:
        if node.a is not self.guards.variable:
            return super().visit_mul(node)
        if not isinstance(node.b, IntImm) or node.b.value % self.guards.tile:
            raise _NotTiled
        return operators.multiply(self.start, node.b.value // self.guards.tile)

    def visit_var(self, node: Var) -> PrimExpr:
        if node is self.guards.variable:
            raise _NotTiled
        return node


class _WithoutGuards(StmtMutator):
    """The body of the loop over whole tiles."""

    def __init__(self, guards: _Guards) -> None:
        super().__init__()
        self.guards = guards

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        if self.guards.row_of(node.condition) is not None:
            return self.visit(node.then_case)  # type: ignore[no-any-return]
        return node.map_children(self.visit)


def _is(expr: PrimExpr, value: int) -> bool:
    return isinstance(expr, IntImm) and expr.value == value


def _smaller_sizes(tile: int, is_vector: bool) -> list[int]:
    """The sizes of the tiles that follow whole ones."""
    following = tile // QUARTER if is_vector else ROWS
    return [following, 1] if 1 < following < tile - 1 else [1]


def in_smaller_tiles(loop: For, tile: int) -> Stmt | None:
    """The loop over whole tiles and those over smaller ones; None if it does not have the form that is expected."""
    guards = _Guards(loop.loop_var, tile)
    try:
        if tile < 2 or not _is(loop.min, 0):
            raise _NotTiled
        guards.collect(loop.body)
        extent = guards.extent
        if extent is None:
            raise _NotTiled
        if not _covers(loop.extent, extent, tile):
            if not isinstance(loop.extent, IntImm):
                raise _NotTiled
            # One of several chunks, of which the last is shorter.
            extent = operators.minimum(extent, loop.extent.value * tile)
        whole = loop.replace(
            extent=operators.floordiv(extent, tile), body=_WithoutGuards(guards).visit(loop.body)
        )
        loops: list[Stmt] = [whole]
        left: PrimExpr = operators.floormod(extent, tile)
        for size in _smaller_sizes(tile, _is_vectorized(loop.body, guards.rows)):
            number = fresh_variable(loop.loop_var)
            start = operators.add(operators.subtract(extent, left), operators.multiply(number, size))
            body = _Smaller(guards, start, size).visit(loop.body)
            count = operators.floordiv(left, size)
            loops.append(For(number, operators.const(0, number.dtype), count, ForKind.SERIAL, body))
            left = operators.floormod(left, size)
    except _NotTiled:
        return None
    return stmt_seq(*loops)


def _terms(expr: PrimExpr) -> list[PrimExpr]:
    """The terms of a sum."""
    terms: list[PrimExpr] = []
    stack = [expr]
    while stack:
        one = stack.pop()
        if isinstance(one, Add):
            stack += [one.a, one.b]
        else:
            terms.append(one)
    return terms


def _covers(count: PrimExpr, extent: PrimExpr, tile: int) -> bool:
    """True if so many tiles cover the extent, and no more."""
    rounded = operators.floordiv(operators.add(extent, tile - 1), tile)
    return bool(Analyzer().can_prove_equal(count, rounded))


def _is_vectorized(body: Stmt, rows: set[Var]) -> bool:
    return any(
        isinstance(part, For) and part.loop_var in rows and part.kind == ForKind.VECTORIZED
        for part in post_order(body)
    )


class _Marked(StmtMutator):
    """Rewrites the loops that have the pragma, and removes it."""

    changed = False

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        body: Any = self.visit(node.body)
        if node.attr_key != f"pragma_{PRAGMA}":
            return node if body is node.body else node.replace(body=body)
        self.changed = True
        tile = node.value
        made = (
            in_smaller_tiles(body, int(tile.value))
            if isinstance(body, For) and isinstance(tile, IntImm)
            else None
        )
        return body if made is None else made


@dataclass(frozen=True)
class TileRemainder(PrimFuncPass):
    """Loops with the pragma ``tile_remainder`` become loops over whole tiles and over smaller ones."""

    name = "tir.TileRemainder"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        """Rewrite one function."""
        marked = _Marked()
        body = marked.visit(function.body)
        return function.with_body(with_one_definition(body)) if marked.changed else function
