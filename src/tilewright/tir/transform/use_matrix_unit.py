"""Maps matrix products that a schedule marks to the CPU's matrix unit.

``pragma_matrix_unit`` marks loops around ``C[...] = C[...] + dot(word of A, word of B)``, whose addresses are linear in
the loop variables. The loops are classified by which addresses depend on them: columns move C and B, rows C and A,
steps A and B. The nest becomes one call of ``tir.matrix_multiply_add``, taken if ``tir.matrix_unit_ready`` says that
the system lets the process use the unit; otherwise, and if the loops have another form, the loops remain.

The call's arguments are: the operator that multiplies words; addresses of C, A and B; columns; words per step; bytes
between rows of C and of A and between words of B; the number of groups of rows, and for each its rows and the offsets
of A and C; the number of loops over steps, outermost first, and for each its count and the steps of A and B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith import Analyzer
from tilewright.arith.pattern import integer_coefficients
from tilewright.ir import operators
from tilewright.ir.expr import Add, Call, IntImm, Load, PrimExpr, Range, StringImm, Var
from tilewright.ir.intrinsics import DOT_PRODUCTS
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, For, IfThenElse, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

PRAGMA = "pragma_matrix_unit"
MOST_ROWS = 16
"""Rows of one tile of the unit; a tile has as many columns of four bytes, and steps of as many words."""
MOST_GROUPS = 2
"""Tiles of rows, and of columns, that fit in the unit together."""


@dataclass(frozen=True)
class _Axis:
    """A loop: its count, and the bytes by which the addresses of C, A and B move with it."""

    count: int
    c: int
    a: int
    b: int


@dataclass(frozen=True)
class _Product:
    """The matrix product of the loops: the operator, the first elements, the loops."""

    name: str
    first: tuple[Load, Load, Load]
    axes: list[_Axis]


class _Rewriter(StmtMutator):
    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != PRAGMA:
            return node.map_children(self.visit)
        found = _product(node.body)
        call = None if found is None else _call(found)
        if call is None:
            return node.body
        ready = operators.call("matrix_unit_ready", "bool", [])
        return IfThenElse(ready, Evaluate(call), node.body)


def _product(stmt: Stmt) -> _Product | None:
    """The product that loops compute; None where they are of another form."""
    loops: list[For] = []
    while isinstance(stmt, (For, AttrStmt)):
        if isinstance(stmt, For):
            loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, Store) or not isinstance(stmt.value, Add):
        return None
    total, product = stmt.value.a, stmt.value.b
    if (
        not isinstance(total, Load)
        or total.buffer_var is not stmt.buffer_var
        or not isinstance(product, Call)
    ):
        return None
    name = str(product.op.name).removeprefix("tir.")
    words = [_first_number(word) for word in product.args] if name in DOT_PRODUCTS else []
    if len(words) != 2 or words[0] is None or words[1] is None or total.dtype.bits != 32:
        return None
    loads = (total, words[0], words[1])
    counts = [loop.extent for loop in loops]
    if not all(isinstance(count, IntImm) for count in counts):
        return None
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    variables = [loop.loop_var for loop in loops]
    first, moves = [], []
    for load in loads:
        found = _linear(analyzer, load, variables, [loop.min for loop in loops])
        if found is None:
            return None
        first.append(found[0])
        moves.append(found[1])
    axes = [
        _Axis(int(count.value), *(move[number] for move in moves))  # type: ignore[attr-defined]
        for number, count in enumerate(counts)
    ]
    return _Product(name, (first[0], first[1], first[2]), axes)


def _first_number(word: PrimExpr) -> Load | None:
    """Where a word begins in memory: at the load of its first number, whose neighbours are the others."""
    if isinstance(word, Load):
        return word
    if not isinstance(word, Call) or word.op.name != "tir.pack_word":
        return None
    first = word.args[0]
    analyzer = Analyzer()
    for place, number in enumerate(word.args):
        if not isinstance(number, Load) or not isinstance(first, Load):
            return None
        distance = analyzer.simplify(operators.subtract(number.index, first.index))
        same = number.buffer_var is first.buffer_var
        if not same or not isinstance(distance, IntImm) or distance.value != place:
            return None
    return first if isinstance(first, Load) else None


def _linear(
    analyzer: Analyzer, load: Load, variables: Sequence[Var], starts: Sequence[PrimExpr]
) -> tuple[Load, list[int]] | None:
    """The load where all loops start, and the bytes by which it moves with each."""
    if load.dtype.lanes != 1:
        return None
    found = integer_coefficients(analyzer.simplify(load.index), variables)
    if found is None:
        return None
    moves, index = found
    for move, start in zip(moves, starts, strict=True):
        index = operators.add(index, operators.multiply(start, move))
    return load.replace(index=index), [move * load.dtype.itemsize for move in moves]


def _call(found: _Product) -> Call | None:
    """The call of the unit; None where a loop moves what it should not, or there are too many rows or columns."""
    axes = [axis for axis in found.axes if axis.count > 1]
    columns = [axis for axis in axes if axis.c and axis.b and not axis.a]
    rows = [axis for axis in axes if axis.c and axis.a and not axis.b]
    steps = [axis for axis in axes if not axis.c and axis.a and axis.b]
    if len(columns) != 1 or not rows or len(columns) + len(rows) + len(steps) != len(axes):
        return None
    (column,) = columns
    words = [axis for axis in steps if axis.a == 4 and axis.count <= MOST_ROWS]
    groups = _groups(rows)
    fits = (column.c, column.b) == (4, 4) and column.count <= MOST_ROWS * MOST_GROUPS
    if not fits or len(words) != 1 or groups is None:
        return None
    (word,) = words
    row = rows[-1]
    loops = [axis for axis in steps if axis is not word]
    numbers = [column.count, word.count, row.c, row.a, word.b, len(groups)]
    numbers += [number for group in groups for number in group]
    numbers += [len(loops), *(number for axis in loops for number in (axis.count, axis.a, axis.b))]
    addresses = [operators.call("address_of", "handle", [load]) for load in found.first]
    given = [StringImm(found.name), *addresses, *(IntImm("int64", number) for number in numbers)]
    return operators.call("matrix_multiply_add", "int32", given)


def _groups(rows: Sequence[_Axis]) -> list[tuple[int, int, int]] | None:
    """The rows of each tile with the offsets of A and C; None where there would be too many tiles."""
    inner = rows[-1]
    parts = -(-inner.count // MOST_ROWS)
    size = -(-inner.count // parts)
    found = [
        (min(size, inner.count - start), start * inner.a, start * inner.c)
        for start in range(0, inner.count, size)
    ]
    for axis in reversed(rows[:-1]):
        found = [
            (count, a + place * axis.a, c + place * axis.c)
            for place in range(axis.count)
            for count, a, c in found
        ]
    return found if len(found) <= MOST_GROUPS else None


@dataclass(frozen=True)
class UseMatrixUnit(PrimFuncPass):
    """Maps matrix products that a schedule marks to the CPU's matrix unit."""

    name = "tir.UseMatrixUnit"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Rewriter().visit(function.body))
