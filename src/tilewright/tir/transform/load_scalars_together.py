"""Loads factors that all lanes share several at a time, for machines whose multiply-adds take a factor from an element
of a vector register.

An unrolled reduction multiplies vectors by neighbouring numbers of a row, each broadcast by a load of its own:
``acc += broadcast(x[k]) * w[...]; acc += broadcast(x[k + 1]) * w[...]``. Where as many neighbours as a vector holds are
read in a straight line, they become one vector load before the first of them, and each broadcast picks its element. One
instruction multiplies by that element, so that the broadcasts take neither instructions nor registers. The factors may
be numbers of float32, numbers of float16 that are widened, or words of packed int8 lanes.

Only stores into memory that the function has allocated lie between the loads that move and their old places, so that no
load moves across a store to what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    IntImm,
    Load,
    Mul,
    PrimExpr,
    Ramp,
    Shuffle,
    Var,
    is_const,
)
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, LetStmt, SeqStmt, Stmt, Store, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


@dataclass
class _Row:
    """Broadcasts of what is loaded from one buffer at constant distances from one place: those of each distance, and
    the number of the store where they are first needed."""

    buffer: Var
    base: PrimExpr | None
    factors: dict[int, list[Broadcast]]
    first: dict[int, int]
    keeps_float16: bool

    def has(self, base: PrimExpr | None) -> bool:
        if base is None or self.base is None:
            return base is self.base
        return structural_equal(base, self.base)

    def vector(self, start: int, lanes: int) -> PrimExpr:
        """The factors from a distance on, as one vector."""
        value = next(iter(self.factors.values()))[0].value
        base = operators.const(start, "int32") if self.base is None else self.base + start
        loads = _loads(value) or []
        count = len(loads)
        wide = [
            Load(load.dtype.with_lanes(lanes), self.buffer, Ramp(base + number, count, lanes))
            for number, load in enumerate(loads)
        ]
        if isinstance(value, Cast):
            return wide[0] if self.keeps_float16 else Cast(value.dtype.with_lanes(lanes), wide[0])
        if isinstance(value, Call):
            return Call(value.dtype.with_lanes(lanes), value.op, wide, value.span)
        return wide[0]


class _Picked(Mutator):
    """Replaces broadcasts, which are told by their identity."""

    def __init__(self, picks: dict[int, PrimExpr]) -> None:
        super().__init__()
        self.picks = picks

    def visit_broadcast(self, node: Broadcast) -> PrimExpr:
        return self.picks.get(id(node), node)


class _Loader(StmtMutator):
    def __init__(self, options: LoadScalarsTogether) -> None:
        super().__init__()
        self.options = options
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
        loads: dict[int, list[tuple[Var, PrimExpr]]] = {}
        for row in _rows(run, self.options):
            if row.buffer in stored:
                continue
            value = next(iter(row.factors.values()))[0].value
            lanes, step = self.options.vector_bits // value.dtype.bits, len(_loads(value) or ())
            for start in _windows(sorted(row.factors), lanes, step):
                loaded = row.vector(start, lanes)
                vector = Var("scalars", loaded.dtype)
                places = [start + lane * step for lane in range(lanes)]
                for lane, place in enumerate(places):
                    for factor in row.factors[place]:
                        picked = Shuffle([vector], [lane] * factor.lanes)
                        is_narrow = loaded.dtype.element != factor.dtype.element
                        picks[id(factor)] = Cast(factor.dtype, picked) if is_narrow else picked
                needed = min(row.first[place] for place in places)
                loads.setdefault(needed, []).append((vector, loaded))
        if not picks:
            return run
        body: Stmt | None = None
        for number in reversed(range(len(run))):
            store = run[number].replace(value=_Picked(picks).visit(run[number].value))
            body = store if body is None else stmt_seq(store, body)
            for vector, load in reversed(loads.get(number, [])):
                body = LetStmt(vector, load, body)
        return [] if body is None else [body]


def _rows(run: Sequence[Store], options: LoadScalarsTogether) -> list[_Row]:
    """The broadcasts of the stores' products, by the place that they are near to."""
    rows: dict[tuple[Var, str, int], list[_Row]] = {}
    for number, store in enumerate(run):
        for factor in _factors(store.value):
            loads = _loads(factor.value)
            if loads is None or (isinstance(factor.value, Load) and not options.also_float32):
                continue
            base, distance = _split(loads[0].index)
            form = f"{type(factor.value).__name__} {loads[0].dtype} {factor.value.dtype}"
            key = (loads[0].buffer_var, form, 0 if base is None else structural_hash(base))
            same = rows.setdefault(key, [])
            row = next((one for one in same if one.has(base)), None)
            if row is None:
                row = _Row(key[0], base, {}, {}, options.keeps_float16)
                same.append(row)
            row.factors.setdefault(distance, []).append(factor)
            row.first.setdefault(distance, number)
    return [row for same in rows.values() for row in same]


def _factors(value: PrimExpr) -> list[Broadcast]:
    """The broadcasts that sums, products and dot products consist of; what may not be evaluated stays as it is."""
    waiting, found = [value], list[Broadcast]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, (Add, Mul)):
            waiting += [part.a, part.b]
        elif isinstance(part, Call) and isinstance(part.op, Op) and part.op.name.startswith("tir.dot_"):
            waiting += part.args
        elif isinstance(part, Broadcast):
            found.append(part)
    return found


def _loads(value: PrimExpr) -> list[Load] | None:
    """The loads of neighbours that a factor is made of; None for other expressions."""
    if isinstance(value, Load):
        parts: Sequence[PrimExpr] = [value] if value.dtype == "float32" else []
    elif isinstance(value, Cast):
        parts = [value.value] if value.dtype == "float32" and value.value.dtype == "float16" else []
    elif isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "tir.pack_word":
        parts = value.args
    else:
        return None
    loads = [part for part in parts if isinstance(part, Load) and is_const(part.predicate, 1)]
    if not loads or len(loads) < len(parts):
        return None
    base, distance = _split(loads[0].index)
    for number, load in enumerate(loads):
        other, place = _split(load.index)
        if load.buffer_var is not loads[0].buffer_var or place != distance + number:
            return None
        if other is not base and (other is None or base is None or not structural_equal(other, base)):
            return None
    return loads


def _split(index: PrimExpr) -> tuple[PrimExpr | None, int]:
    """An index as a place and a constant distance from it."""
    if isinstance(index, IntImm):
        return None, int(index.value)
    if isinstance(index, Add) and isinstance(index.b, IntImm):
        return index.a, int(index.b.value)
    return index, 0


def _windows(distances: Sequence[int], lanes: int, step: int) -> list[int]:
    """Where windows of neighbours begin that do not overlap; a factor is made of ``step`` elements."""
    starts: list[int] = []
    known = set(distances)
    for distance in distances:
        if (not starts or distance >= starts[-1] + lanes * step) and all(
            distance + lane * step in known for lane in range(lanes)
        ):
            starts.append(distance)
    return starts


@dataclass(frozen=True)
class LoadScalarsTogether(PrimFuncPass):
    """Loads neighbouring factors of unrolled products as vectors of ``vector_bits``; those of float32, which LLVM can
    see to itself on some machines, only if ``also_float32``. Those of float16 are widened after they were picked if
    ``keeps_float16``: for machines that multiply them as they are."""

    vector_bits: int
    also_float32: bool = True
    keeps_float16: bool = False
    name = "tir.LoadScalarsTogether"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Loader(self).visit(function.body))
