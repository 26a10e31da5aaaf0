"""Adds up long sums of floats block by block.

A float that thousands of terms are added to, one after another, rounds every time, and the larger it grows the more of
each term is lost: of four million terms of 0.1 in float32, a plain loop loses 4 %. So the loop runs in blocks of
``BLOCK`` terms. Each block is added up from zero, in an accumulator of its own, and its sum is added to the whole;
where there are many blocks, they form blocks in turn. The error then grows with ``BLOCK`` and the number of levels, not
with the number of terms. In a block nothing changes, so the loop is as fast as before:

.. code-block:: text

    for k in range(n):                  for block in range(ceil(n / 256)):
        sum[0] = sum[0] + x[k]              part[0] = 0
                                            for k in range(256 * block, min(256 * block + 256, n)):
                                                part[0] = part[0] + x[k]
                                            sum[0] = sum[0] + part[0]

An accumulator here is an element, or a vector, of one buffer, at an index that does not change in the loop, or a small
local buffer as a whole; the loop only adds to it. Short sums stay as they are. So do the sums of a large register tile
up to a greater length, as each block stores and reloads the whole tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import Broadcast, Call, IntImm, Load, PrimExpr, Ramp, Var
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    stmt_seq,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.accumulators import Place, Updates, added_term, same_place
from tilewright.tir.transform.lib.effects import is_pure
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator, with_one_definition

BLOCK: Final = 256
"""Terms per block."""
LONG: Final = 2 * BLOCK
"""The most terms that are added up one after another."""
LONG_IN_TILE: Final = 32 * BLOCK
"""The same for accumulators of more than ``SMALL_BYTES``."""
SMALL_BYTES: Final = 256
"""The size of four AVX-512 registers, as many as the sum of a row uses."""
MOST_BYTES: Final = 4096
"""The size of accumulators from which they are not in registers anyway."""
MOST_LANES: Final = 64
"""Elements that are cleared or added at a time."""
DYNAMIC_TERMS: Final = 1 << 24
"""The length that sums of dynamic length are made for."""


class _Blocker(StmtMutator):
    """Rewrites loops from the inside out. ``updates`` describes the statement that was visited last."""

    def __init__(self, own: set[Var], small_bytes: int) -> None:
        super().__init__()
        self.small_bytes = small_bytes
        self.own = own
        """Buffers that no other pointer points into."""
        self.whole: dict[Var, DataType] = {}
        """Small buffers, as vectors."""
        self.updates = Updates({})
        self.analyzer = Analyzer()
        self.repeated = False

    def visit_default(self, node: Stmt) -> Stmt:
        self.updates = Updates(self.whole, opaque=True)
        return node

    def visit_store(self, node: Store) -> Stmt:
        self.updates = updates = Updates(self.whole)
        term = added_term(node)
        if term is None or node.buffer_var not in self.own or not is_pure(node.index):
            updates.use(node.buffer_var, node.value, node.index, node.predicate)
        else:
            updates.use(term, node.index, node.predicate)
            updates.add(node.buffer_var, Place(node.index, node.value.dtype, 1))
        return node

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        call = node.value
        self.updates = Updates(self.whole, opaque=not (is_pure(call) or _is_prefetch(call)))
        self.updates.use(call)
        return node

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        whole = Updates(self.whole)
        made = []
        for statement in node.seq:
            made.append(self.visit(statement))
            whole.include(self.updates)
        self.updates = whole
        same = all(new is old for new, old in zip(made, node.seq, strict=True))
        return node if same else SeqStmt(made, node.span)

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        whole = Updates(self.whole)
        whole.use(node.condition)
        then_case = self.visit(node.then_case)
        whole.include(self.updates)
        else_case = None
        if node.else_case is not None:
            else_case = self.visit(node.else_case)
            whole.include(self.updates)
        self.updates = whole
        if then_case is node.then_case and else_case is node.else_case:
            return node
        return IfThenElse(node.condition, then_case, else_case, node.span)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        body = self.visit(node.body)
        self.updates.leave(node.var)
        self.updates.use(node.value)
        return node if body is node.body else node.replace(body=body)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        body = self.visit(node.body)
        self.updates.use(node.value)
        return node if body is node.body else node.replace(body=body)

    def visit_assert_stmt(self, node: AssertStmt) -> Stmt:
        body = self.visit(node.body)
        self.updates.use(node.condition)
        return node if body is node.body else node.replace(body=body)

    def visit_allocate(self, node: Allocate) -> Stmt:
        self.own.add(node.buffer_var)
        size = node.constant_size()
        if size is not None and node.dtype.lanes == 1 and 0 < size * node.dtype.bits <= 8 * MOST_BYTES:
            self.whole[node.buffer_var] = node.dtype.with_lanes(size)
        body = self.visit(node.body)
        self.updates.leave(node.buffer_var)
        return node if body is node.body else node.replace(body=body)

    def visit_for(self, node: For) -> Stmt:
        body = self.visit(node.body)
        loop = node if body is node.body else node.replace(body=body)
        updates = self.updates
        updates.use(node.min, node.extent)
        if node.kind is not ForKind.SERIAL:
            updates.opaque = True
            return loop
        count = self._most(loop.extent)
        long = {
            buffer: places
            for buffer, places in updates.sums().items()
            if not any(place.mentions(loop.loop_var) for place in places)
            and _is_long(places, count, self.small_bytes)
        }
        if not long:
            updates.leave(loop.loop_var, count)
            return loop
        terms = max(place.terms or 1 for places in long.values() for place in places)
        made, blocks = self._in_blocks(loop, long, max(BLOCK // terms, 1), count)
        updates.leave(loop.loop_var, count)
        for buffer, places in long.items():
            updates.added[buffer] = [replace(place, terms=blocks) for place in places]
        if count is not None:
            return made
        # Where lengths are dynamic, most are short.
        self.repeated = True
        return IfThenElse(operators.less(LONG, loop.extent), made, loop)

    def _most(self, extent: PrimExpr) -> int | None:
        """The number of iterations; at most so many, if they are few whatever the sizes of the tensors."""
        if isinstance(extent, IntImm):
            return int(extent.value)
        most = self.analyzer.const_int_bound(extent).max_value
        return int(most) if most <= LONG else None

    def _in_blocks(
        self, loop: For, sums: Mapping[Var, Sequence[Place]], length: int, count: int | None
    ) -> tuple[For, int]:
        """The loop in blocks of ``length`` iterations, and how many blocks there are at most."""
        number = Var(f"{loop.loop_var.name}_block", loop.loop_var.dtype)
        body, parts = loop.body, []
        for buffer, places in sums.items():
            part = _Part(buffer, places)
            body = part.instead(body)
            parts.append(part)
        start = operators.multiply(number, length)
        left = operators.minimum(operators.subtract(loop.extent, start), length)
        whole = isinstance(loop.extent, IntImm) and loop.extent.value % length == 0
        block = For(
            loop.loop_var,
            self.analyzer.simplify(operators.add(loop.min, start)),
            length if whole else left,
            ForKind.SERIAL,
            body,
            None,
            loop.annotations,
            loop.span,
        )
        inside = stmt_seq(*(part.cleared() for part in parts), block, *(part.added() for part in parts))
        for part in parts:
            inside = part.allocated(inside)
        number_of_blocks = operators.floordiv(operators.add(loop.extent, length - 1), length)
        most = -(-(DYNAMIC_TERMS if count is None else count) // length)
        blocks = For(number, 0, self.analyzer.simplify(number_of_blocks), ForKind.SERIAL, inside)
        sums = {buffer: [replace(place, terms=1) for place in places] for buffer, places in sums.items()}
        if any(_is_long(places, most, self.small_bytes) for places in sums.values()):
            blocks, most = self._in_blocks(blocks, sums, BLOCK, most)
        return blocks, most


class _Part:
    """The accumulators of a block that stand for those of one buffer."""

    def __init__(self, buffer: Var, places: Sequence[Place]) -> None:
        self.buffer = buffer
        self.element = places[0].dtype.element
        self.slots: list[tuple[PrimExpr, PrimExpr]] = []
        """The place in the buffer and that in the block, for each accumulator."""
        self.same_indices = places[0].index is None
        self.size = 0
        for index in _vectors(places[0].dtype.lanes) if self.same_indices else _indices(places):
            self.slots.append((index, _contiguous(self.size, index.dtype.lanes)))
            self.size += index.dtype.lanes
        self.part = Var(f"{buffer.name}_part", PointerType(PrimType(self.element), "local"))

    def instead(self, body: Stmt) -> Stmt:
        """The body with the block's accumulators in the place of the buffer's."""
        return _Redirect(self).visit(body)  # type: ignore[no-any-return]

    def redirected(self, store: Store) -> Store:
        """An addition to the buffer as one to the block's accumulator."""
        term = added_term(store)
        assert term is not None
        slot = store.index
        if not self.same_indices:
            slot = next(slot for place, slot in self.slots if same_place(place, store.index))
        total = operators.add(Load(term.dtype, self.part, slot), term)
        return Store(self.part, total, slot, store.predicate, store.span)

    def cleared(self) -> Stmt:
        """All accumulators set to zero."""
        zero = operators.const(0.0, self.element)
        made = []
        for _, slot in self.slots:
            lanes = slot.dtype.lanes
            made.append(Store(self.part, Broadcast(zero, lanes) if lanes > 1 else zero, slot))
        return stmt_seq(*made)

    def added(self) -> Stmt:
        """The sums of the block added to the buffer's."""
        made = []
        for place, slot in self.slots:
            dtype = self.element.with_lanes(place.dtype.lanes)
            total = operators.add(Load(dtype, self.buffer, place), Load(dtype, self.part, slot))
            made.append(Store(self.buffer, total, place))
        return stmt_seq(*made)

    def allocated(self, body: Stmt) -> Stmt:
        """The body with memory for the accumulators."""
        return Allocate(self.part, self.element, [self.size], operators.const_true(), body)


def _indices(places: Sequence[Place]) -> list[PrimExpr]:
    return [place.index for place in places if place.index is not None]


def _vectors(size: int) -> list[PrimExpr]:
    """The indices of a whole buffer, some at a time."""
    return [_contiguous(first, min(size - first, MOST_LANES)) for first in range(0, size, MOST_LANES)]


def _contiguous(first: int, lanes: int) -> PrimExpr:
    return Ramp(first, 1, lanes) if lanes > 1 else operators.const(first, "int32")


class _Redirect(StmtMutator):
    def __init__(self, part: _Part) -> None:
        super().__init__()
        self.part = part

    def visit_store(self, node: Store) -> Stmt:
        return self.part.redirected(node) if node.buffer_var is self.part.buffer else node


def _is_prefetch(call: PrimExpr) -> bool:
    return isinstance(call, Call) and isinstance(call.op, Op) and call.op.name == "tir.prefetch"


def _is_long(places: Sequence[Place], iterations: int | None, small_bytes: int) -> bool:
    """True if a loop with so many iterations adds too many terms to one of these places in a row. ``iterations`` is
    None where their number is dynamic and may be large."""
    size = sum(place.dtype.lanes * place.dtype.bits // 8 for place in places)
    if size > MOST_BYTES or (iterations is None and size > small_bytes):
        return False
    most = LONG if size <= small_bytes else LONG_IN_TILE
    return any(
        iterations is None or place.terms is None or place.terms * iterations > most for place in places
    )


def block_long_sums(stmt: Stmt, own: Iterable[Var], small_bytes: int = SMALL_BYTES) -> Stmt:
    """The statement with its long sums in blocks. ``own`` are buffers from outside that no other pointer points into;
    what the statement allocates is its own anyway. Accumulators of more than ``small_bytes`` are a register tile."""
    blocker = _Blocker(set(own), small_bytes)
    made: Stmt = blocker.visit(stmt)
    return with_one_definition(made) if blocker.repeated else made


@dataclass(frozen=True)
class BlockLongSums(PrimFuncPass):
    """Adds up long sums of floats block by block, so that less of each term is lost.

    Accumulators of more than ``small_bytes`` are a register tile, whose blocks are longer.
    """

    small_bytes: int = SMALL_BYTES
    name = "tir.BlockLongSums"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        distinct = bool(function.attrs.get("tir.noalias"))
        own = [buffer.data for buffer in function.buffer_map.values()] if distinct else []
        return function.with_body(block_long_sums(function.body, own, self.small_bytes))
