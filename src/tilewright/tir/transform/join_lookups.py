"""Joins lookups in tables of bytes whose results are stored one after the other.

Kernels of quantised tensors compute 8 or 16 channels at a time, and look each of them up in a table of 256 bytes. The
cost of a lookup depends on registers, not on lanes: with ``pshufb`` it is 16 shuffles, whether of 8 bytes or of 32. So
neighbouring stores of entries of one table become one lookup by the joined indices. If they are of adjacent bytes, it
is stored at once, otherwise in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import Broadcast, Call, IntImm, Load, PrimExpr, Ramp, Shuffle, StringImm, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import LetStmt, SeqStmt, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.effects import is_droppable
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

MOST_LANES: Final = 32
"""Of joined lookups: the bytes of a register with AVX2."""


@dataclass(frozen=True)
class _Lookup:
    """A store of a vector of entries, and what they are looked up by."""

    store: Store
    index: PrimExpr
    table: StringImm
    base: PrimExpr

    @property
    def lanes(self) -> int:
        return int(self.index.dtype.lanes)


def _lookup_of(statement: Stmt) -> _Lookup | None:
    """A store to consecutive bytes of a lookup and nothing else, under no condition."""
    if not isinstance(statement, Store) or not isinstance(statement.value, Call):
        return None
    value, place, predicate = statement.value, statement.index, statement.predicate
    if getattr(value.op, "name", "") != "tir.lookup_byte" or not isinstance(place, Ramp):
        return None
    if not isinstance(place.stride, IntImm) or place.stride.value != 1:
        return None
    holds = predicate.value if isinstance(predicate, Broadcast) else predicate
    if not isinstance(holds, IntImm) or holds.value != 1:
        return None
    index, table = value.args
    assert isinstance(table, StringImm)
    return _Lookup(statement, index, table, place.base)


def _depends_on_order(lookup: _Lookup) -> bool:
    """True if the index reads the memory that is stored to, or does more than to compute a value."""
    return not is_droppable(lookup.index) or any(
        isinstance(part, Load) and part.buffer_var is lookup.store.buffer_var
        for part in post_order(lookup.index)
    )


class _Joiner(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        made = node.map_children(self.visit)
        if not isinstance(made, SeqStmt):
            return made
        parts: list[Stmt] = []
        waiting: list[_Lookup] = []
        for statement in made.seq:
            found = _lookup_of(statement)
            if found is not None and waiting and not self._follows(waiting, found):
                parts.append(self._joined(waiting))
                waiting = []
            if found is None:
                parts += [self._joined(waiting)] if waiting else []
                waiting = []
                parts.append(statement)
            else:
                waiting.append(found)
        parts += [self._joined(waiting)] if waiting else []
        if len(parts) == len(made.seq):
            return made
        return parts[0] if len(parts) == 1 else made.replace(seq=tuple(parts))

    def _follows(self, before: Sequence[_Lookup], after: _Lookup) -> bool:
        """True if a lookup may be done together with those before it."""
        first = before[0]
        if after.lanes != first.lanes or (len(before) + 1) * first.lanes > MOST_LANES:
            return False
        if after.store.buffer_var is not first.store.buffer_var or after.table.value != first.table.value:
            return False
        return not _depends_on_order(after)

    def _joined(self, lookups: Sequence[_Lookup]) -> Stmt:
        """What several stores do, with one lookup."""
        first, each = lookups[0], lookups[0].lanes
        if len(lookups) == 1:
            return first.store
        lanes = each * len(lookups)
        value = first.store.value
        assert isinstance(value, Call)
        index = _picked([one.index for one in lookups], range(lanes))
        entries = value.replace(args=(index, first.table), dtype=value.dtype.with_lanes(lanes))
        if all(self._distance(first, one) == each * number for number, one in enumerate(lookups)):
            return Store(first.store.buffer_var, entries, Ramp(first.base, 1, lanes), None, first.store.span)
        found = Var("entries", str(entries.dtype))
        parts = [
            one.store.replace(value=_picked([found], range(each * number, each * (number + 1))))
            for number, one in enumerate(lookups)
        ]
        return LetStmt(found, entries, SeqStmt(parts), first.store.span)

    def _distance(self, first: _Lookup, other: _Lookup) -> int | None:
        """From the place of one to that of another; None if unknown."""
        distance = self.analyzer.simplify(operators.subtract(other.base, first.base))
        return distance.value if isinstance(distance, IntImm) else None


def _picked(vectors: Sequence[PrimExpr], lanes: Sequence[int]) -> PrimExpr:
    return Shuffle(vectors, [IntImm("int32", lane) for lane in lanes])


@dataclass(frozen=True)
class JoinLookups(PrimFuncPass):
    """Looks up in a table of bytes for several stores together."""

    name = "tir.JoinLookups"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Joiner().visit(function.body))
