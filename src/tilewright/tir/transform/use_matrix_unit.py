"""Maps matrix products that a schedule marks to the CPU's matrix unit.

``pragma_matrix_unit`` marks loops around ``C[...] = C[...] + dot(word of A, word of B)``, whose addresses are linear in
the loop variables. The loops are classified by which addresses depend on them: columns move C and B, rows C and A,
steps A and B. The nest becomes one call of ``tir.matrix_multiply_add``, taken if ``tir.matrix_unit_ready`` says that
the system lets the process use the unit; otherwise, and if the loops have another form, the loops remain. Where loops
before it fill C with zeros, the call sums from zero instead, and they are only run with the loops that remain.

The call's arguments are: the operator that multiplies words; addresses of C, A and B; 1 if it sums from zero, 0 if it
adds to C; columns; words per step; bytes between rows of C and of A and between words of B; the number of groups of
rows, and for each its rows and the offsets of A and C; the number of loops over steps, outermost first, and for each
its count and the steps of A and B.

The unit is configured for the sizes of its tiles, which takes longer than many products. The attribute
``matrix_unit_tiles`` is around the largest statements whose products have tiles of the same sizes, with a tuple of the
columns, the words and the rows of each group: within it, the unit is configured on every thread that computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.arith import Analyzer
from tilewright.arith.pattern import integer_coefficients
from tilewright.ir import operators
from tilewright.ir.expr import Add, Call, IntImm, Load, PrimExpr, Range, StringImm, Var, is_const
from tilewright.ir.functor import post_order
from tilewright.ir.intrinsics import DOT_PRODUCTS
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

PRAGMA = "pragma_matrix_unit"
TILES = "matrix_unit_tiles"
_PRODUCT = "tir.matrix_multiply_add"
_ADDRESSES = 4
"""Arguments of a product before its numbers."""
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
        return _multiplied(node.body, None)

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        parts: list[Stmt] = []
        for part in node.seq:
            if parts and isinstance(part, AttrStmt) and part.attr_key == PRAGMA:
                parts[-1:] = _after(parts[-1], part.body)
            else:
                parts.append(self.visit(part))
        return SeqStmt(parts) if len(parts) > 1 else parts[0]


def _after(before: Stmt, loops: Stmt) -> list[Stmt]:
    """A product and what stands before it, which may fill the sum with zeros."""
    found = _product(loops)
    if found is not None and _fills_with_zeros(before, found):
        return [_multiplied(loops, before)]
    return [before, _multiplied(loops, None)]


def _multiplied(loops: Stmt, zeros: Stmt | None) -> Stmt:
    """Loops as a product, beside themselves; ``zeros`` are the loops that fill the sum with zeros."""
    found = _product(loops)
    call = None if found is None else _call(found, zeros is not None)
    remaining = loops if zeros is None else SeqStmt([zeros, loops])
    if call is None:
        return remaining
    ready = operators.call("matrix_unit_ready", "bool", [])
    return IfThenElse(ready, Evaluate(call), remaining)


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """The loops around a statement, outermost first, and the statement."""
    loops: list[For] = []
    while isinstance(stmt, (For, AttrStmt)):
        if isinstance(stmt, For):
            loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _product(stmt: Stmt) -> _Product | None:
    """The product that loops compute; None where they are of another form."""
    loops, store = _nest(stmt)
    if not isinstance(store, Store) or not isinstance(store.value, Add):
        return None
    total, product = store.value.a, store.value.b
    if (
        not isinstance(total, Load)
        or total.buffer_var is not store.buffer_var
        or not isinstance(product, Call)
    ):
        return None
    name = str(product.op.name).removeprefix("tir.")
    words = [_first_number(word) for word in product.args] if name in DOT_PRODUCTS else []
    if len(words) != 2 or words[0] is None or words[1] is None or total.dtype.bits != 32:
        return None
    linear = _linear_loads(loops, (total, words[0], words[1]))
    if linear is None:
        return None
    counts, (c, a, b) = linear
    axes = [_Axis(*each) for each in zip(counts, c[1], a[1], b[1], strict=True)]
    return _Product(name, (c[0], a[0], b[0]), axes)


def _fills_with_zeros(stmt: Stmt, product: _Product) -> bool:
    """True if loops store a zero to every element of C, and do nothing else."""
    loops, store = _nest(stmt)
    total = product.first[0]
    if (
        not isinstance(store, Store)
        or store.buffer_var is not total.buffer_var
        or not is_const(store.value, 0)
    ):
        return False
    linear = _linear_loads(loops, (total.replace(index=store.index),))
    if linear is None:
        return False
    counts, ((first, moves),) = linear
    distance = Analyzer().simplify(operators.subtract(first.index, total.index))
    filled = sorted(pair for pair in zip(counts, moves, strict=True) if pair[0] > 1)
    written = sorted((axis.count, axis.c) for axis in product.axes if axis.count > 1 and axis.c)
    return is_const(distance, 0) and filled == written


def _linear_loads(
    loops: Sequence[For], loads: Sequence[Load]
) -> tuple[list[int], list[tuple[Load, list[int]]]] | None:
    """The counts of loops, and of each load where all loops start and the bytes by which each moves it; None where one
    is not linear."""
    counts = [loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)]
    if len(counts) != len(loops):
        return None
    analyzer = Analyzer()
    for loop in loops:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    variables, starts = [loop.loop_var for loop in loops], [loop.min for loop in loops]
    found = [_linear(analyzer, load, variables, starts) for load in loads]
    known = [one for one in found if one is not None]
    return (counts, known) if len(known) == len(found) else None


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


def _call(found: _Product, from_zero: bool) -> Call | None:
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
    row = rows[-1]
    word, loops = _joined(words[0], [axis for axis in steps if axis is not words[0]])
    numbers = [int(from_zero), column.count, word.count, row.c, row.a, word.b, len(groups)]
    numbers += [number for group in groups for number in group]
    numbers += [len(loops), *(number for axis in loops for number in (axis.count, axis.a, axis.b))]
    addresses = [operators.call("address_of", "handle", [load]) for load in found.first]
    given = [StringImm(found.name), *addresses, *(IntImm("int64", number) for number in numbers)]
    return operators.call("matrix_multiply_add", "int32", given)


def _joined(word: _Axis, loops: list[_Axis]) -> tuple[_Axis, list[_Axis]]:
    """The words of a step and the loops over steps, with a loop whose steps follow each other in memory made words."""
    for axis in loops:
        count = word.count * axis.count
        if count <= MOST_ROWS and (axis.a, axis.b) == (word.count * word.a, word.count * word.b):
            return replace(word, count=count), [other for other in loops if other is not axis]
    return word, loops


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


def _tiles(call: Call) -> tuple[int, ...]:
    """The columns, the words and the rows of each group of a call."""
    numbers = [argument.value for argument in call.args[_ADDRESSES:] if isinstance(argument, IntImm)]
    _, columns, words, _, _, _, groups = numbers[:7]
    return (columns, words, *numbers[7 : 7 + 3 * groups : 3])


class _Configuration(StmtMutator):
    """Puts the attribute around the largest statements that need one configuration, which parallel loops are only the
    outermost part of."""

    def __init__(self) -> None:
        super().__init__()
        self.in_task = False

    def visit(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        parts = post_order(node)
        tiles = {_tiles(part) for part in parts if isinstance(part, Call) and part.op.name == _PRODUCT}
        if not tiles:
            return node
        if len(tiles) == 1 and (self.in_task or not any(map(_is_parallel, post_order(_below(node))))):
            (sizes,) = tiles
            numbers = [IntImm("int32", size) for size in sizes]
            return AttrStmt("", TILES, operators.call("tvm_tuple", "handle", numbers), node)
        before, self.in_task = self.in_task, self.in_task or _is_parallel(node)
        made = super().visit(node)
        self.in_task = before
        return made


def _below(node: Stmt) -> Stmt:
    """What a parallel loop repeats; of another statement the statement."""
    return node.body if isinstance(node, For) and _is_parallel(node) else node


def _is_parallel(node: object) -> bool:
    return isinstance(node, For) and node.kind == ForKind.PARALLEL


@dataclass(frozen=True)
class UseMatrixUnit(PrimFuncPass):
    """Maps matrix products that a schedule marks to the CPU's matrix unit."""

    name = "tir.UseMatrixUnit"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Configuration().visit(_Rewriter().visit(function.body)))
