"""Loads factors that all lanes share several at a time, for machines whose multiply-adds take a factor from an element
of a vector register.

An unrolled reduction multiplies vectors by neighbouring numbers of a row, each broadcast by a load of its own:
``acc += broadcast(x[k]) * w[...]; acc += broadcast(x[k + 1]) * w[...]``. Where as many neighbours as a vector holds are
read in a straight line, they become one vector load before the first of them, and each broadcast picks its element. One
instruction multiplies by that element, so that the broadcasts take neither instructions nor registers.

Only stores into memory that the function has allocated lie between the loads that move and their old places, so that no
load moves across a store to what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import Add, Broadcast, IntImm, Load, Mul, PrimExpr, Ramp, Shuffle, Var, is_const
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, LetStmt, SeqStmt, Stmt, Store, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


@dataclass
class _Row:
    """Broadcast loads of one buffer at constant distances from one place: those of each distance, and the number of the
    store where they are first needed."""

    buffer: Var
    base: PrimExpr | None
    factors: dict[int, list[Broadcast]]
    first: dict[int, int]

    def has(self, buffer: Var, base: PrimExpr | None) -> bool:
        if buffer is not self.buffer or (base is None) != (self.base is None):
            return False
        return base is None or structural_equal(base, self.base)


class _Picked(Mutator):
    """Replaces broadcasts, which are told by their identity."""

    def __init__(self, picks: dict[int, PrimExpr]) -> None:
        super().__init__()
        self.picks = picks

    def visit_broadcast(self, node: Broadcast) -> PrimExpr:
        return self.picks.get(id(node), node)


class _Loader(StmtMutator):
    def __init__(self, vector_bits: int) -> None:
        super().__init__()
        self.vector_bits = vector_bits
        self.allocated: set[Var] = set()

    def visit_allocate(self, node: Allocate) -> Stmt:
        self.allocated.add(node.buffer_var)
        made: Stmt = node.map_children(self.visit)
        return made

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        parts: list[Stmt] = []
        run: list[Store] = []
        for part in node.seq:
            if isinstance(part, Store) and part.buffer_var in self.allocated and is_const(part.predicate, 1):
                run.append(part)
                continue
            parts += [*self._together(run), self.visit(part)]
            run = []
        parts += self._together(run)
        return stmt_seq(*parts)

    def _together(self, run: Sequence[Store]) -> Sequence[Stmt]:
        """The stores with their shared factors loaded together, or as they are where none are neighbours."""
        stored = {store.buffer_var for store in run}
        picks: dict[int, PrimExpr] = {}
        loads: dict[int, list[tuple[Var, Load]]] = {}
        for row in _rows(run):
            if row.buffer in stored:
                continue
            element = next(iter(row.factors.values()))[0].value.dtype
            lanes = self.vector_bits // element.bits
            for start in _windows(sorted(row.factors), lanes):
                vector = Var("scalars", element.with_lanes(lanes))
                base = operators.const(start, "int32") if row.base is None else row.base + start
                load = Load(vector.dtype, row.buffer, Ramp(base, 1, lanes))
                for lane in range(lanes):
                    for factor in row.factors[start + lane]:
                        picks[id(factor)] = Shuffle([vector], [lane] * factor.lanes)
                needed = min(row.first[start + lane] for lane in range(lanes))
                loads.setdefault(needed, []).append((vector, load))
        if not picks:
            return run
        body: Stmt | None = None
        for number in reversed(range(len(run))):
            store = run[number].replace(value=_Picked(picks).visit(run[number].value))
            body = store if body is None else stmt_seq(store, body)
            for vector, load in reversed(loads.get(number, [])):
                body = LetStmt(vector, load, body)
        return [] if body is None else [body]


def _rows(run: Sequence[Store]) -> list[_Row]:
    """The broadcast loads of the stores' products, by the place that they are near to."""
    rows: dict[tuple[Var, int], list[_Row]] = {}
    for number, store in enumerate(run):
        for factor in _factors(store.value):
            assert isinstance(factor.value, Load)
            base, distance = _split(factor.value.index)
            key = (factor.value.buffer_var, 0 if base is None else structural_hash(base))
            same = rows.setdefault(key, [])
            row = next((one for one in same if one.has(key[0], base)), None)
            if row is None:
                row = _Row(key[0], base, {}, {})
                same.append(row)
            row.factors.setdefault(distance, []).append(factor)
            row.first.setdefault(distance, number)
    return [row for same in rows.values() for row in same]


def _factors(value: PrimExpr) -> list[Broadcast]:
    """The broadcast loads of float32 that sums and products consist of; what may not be evaluated is left alone."""
    waiting, found = [value], list[Broadcast]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, (Add, Mul)):
            waiting += [part.a, part.b]
        elif (
            isinstance(part, Broadcast)
            and isinstance(part.value, Load)
            and part.value.dtype == "float32"
            and is_const(part.value.predicate, 1)
        ):
            found.append(part)
    return found


def _split(index: PrimExpr) -> tuple[PrimExpr | None, int]:
    """An index as a place and a constant distance from it."""
    if isinstance(index, IntImm):
        return None, int(index.value)
    if isinstance(index, Add) and isinstance(index.b, IntImm):
        return index.a, int(index.b.value)
    return index, 0


def _windows(distances: Sequence[int], lanes: int) -> list[int]:
    """Where windows of neighbours begin that do not overlap."""
    starts: list[int] = []
    known = set(distances)
    for distance in distances:
        if (not starts or distance >= starts[-1] + lanes) and all(
            distance + lane in known for lane in range(lanes)
        ):
            starts.append(distance)
    return starts


@dataclass(frozen=True)
class LoadScalarsTogether(PrimFuncPass):
    """Loads neighbouring factors of unrolled products as vectors of ``vector_bits``."""

    vector_bits: int
    name = "tir.LoadScalarsTogether"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Loader(self.vector_bits).visit(function.body))
