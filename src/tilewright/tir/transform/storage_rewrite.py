"""Moves allocations out of loops, and lets buffers whose lifetimes do not overlap share memory.

A buffer is live from the first to the last statement that accesses it; a loop or a kernel between its allocation and
such a statement counts as one statement, because the next iteration, or another thread, may see what this one wrote.
Allocations move to the function's top, or to the top of the enclosing parallel loop or thread group. Two of them share
memory if they have the same place, storage scope and element type. A buffer may also take the memory of one that the
same statement reads for the last time, if each element is computed only from the element at the same index.

A buffer whose size is only known inside (it uses a variable defined there) stays where it is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Var, is_const
from tilewright.ir.functor import Mutator, Visitor, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import DataType
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    For,
    ForKind,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.in_place import can_run_in_place
from tilewright.tir.transform.lib.statement_rewriter import thread_axis

_REGISTER_SCOPES = ("local", "warp")
_REGISTER_KINDS = ("wmma", "m16n8k8")
"""Scopes of registers, and what those of matrix units begin with: sharing them saves nothing and hides from the code
generator what lives when. A scope with a tag, as ``local.L0A``, is a memory of its own."""

_SMALL_BITS = 32
"""A buffer of so few bits becomes a register."""

_MATCH_RANGE = 16
"""Memory is not reused for a buffer that is so many times larger or smaller."""


@dataclass(slots=True, eq=False)
class _Span:
    """A statement and the positions from its first to its last part."""

    stmt: Stmt
    first: int
    last: int = -1
    touched: list[_Lifetime] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Lifetime:
    """An allocation, where it may move to, and from when to when it is used."""

    node: Allocate
    depth: int
    place: Stmt | None
    first: int = -1
    last: int = -1


@dataclass(slots=True, eq=False)
class _Block:
    """Memory that one or more allocations share: its variable, size in elements, and when its latest user ends."""

    variable: Var
    dtype: DataType
    users: list[_Lifetime]
    elements: PrimExpr
    last: int

    @property
    def constant(self) -> int | None:
        return self.elements.value if isinstance(self.elements, IntImm) else None


class _Liveness(Visitor):
    """Walks the statements in order and finds the lifetime of every allocation that can move."""

    def __init__(self) -> None:
        super().__init__()
        self.position = 0
        self.loops: list[_Span] = []
        self.places: list[tuple[Stmt | None, int]] = [(None, 0)]
        self.defined: list[Var] = []
        self.lifetimes: dict[Var, _Lifetime] = {}
        self.spans: dict[int, _Span] = {}

    def visit_allocate(self, node: Allocate) -> None:
        place, outside = self.places[-1]
        inside = set(self.defined[outside:])
        sizes = [found for extent in node.extents for found in post_order(extent) if isinstance(found, Var)]
        if is_const(node.condition, 1) and not any(variable in inside for variable in sizes):
            self.lifetimes[node.buffer_var] = _Lifetime(node, len(self.loops), place)
        self._touch(*node.extents)
        self.visit(node.body)

    def visit_for(self, node: For) -> None:
        self._touch(node.min, node.extent)
        self.defined.append(node.loop_var)
        if node.kind == ForKind.PARALLEL:
            self.places.append((node, len(self.defined)))
        self._loop(node, node.body)
        if node.kind == ForKind.PARALLEL:
            self.places.pop()
        self.defined.pop()

    def visit_while(self, node: While) -> None:
        self._loop(node, node)

    def _loop(self, node: For | While | AttrStmt, body: Stmt) -> None:
        span = _Span(node, self.position)
        self.spans[self.position] = span
        self.position += 1
        self.loops.append(span)
        if body is node:
            self.visit_default(node)
        else:
            self.visit(body)
        self.loops.pop()
        span.last = self.position
        self.position += 1
        for lifetime in span.touched:
            lifetime.last = max(lifetime.last, span.last)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self._leaf(node, node.value)
        self.defined.append(node.var)
        self.visit(node.body)
        self.defined.pop()
        if node.var.dtype.is_handle:
            # A pointer to a buffer: the buffer lives as long as the pointer can be used.
            self._leaf(node, node.value)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        self._touch(node.value)
        axis = thread_axis(node)
        enters = axis is not None and not isinstance(self.places[-1][0], AttrStmt)
        if axis is not None:
            self.defined.append(axis.var)
        if enters:
            self.places.append((node, len(self.defined)))
            # Threads run side by side: one may still read what another's next statement would overwrite.
            self._loop(node, node.body)
            self.places.pop()
        else:
            self.visit(node.body)
        if axis is not None:
            self.defined.pop()

    def visit_seq_stmt(self, node: SeqStmt) -> None:
        for stmt in node.seq:
            self.visit(stmt)

    def visit_default(self, node: Any) -> None:
        statements = [child for child in node.children() if isinstance(child, Stmt)]
        self._leaf(node, *[child for child in node.children() if not isinstance(child, Stmt)])
        for stmt in statements:
            self.visit(stmt)

    def _leaf(self, node: Stmt, *exprs: Any) -> None:
        self.spans[self.position] = _Span(node, self.position, self.position)
        self._touch(*exprs)
        self.position += 1

    def _touch(self, *exprs: Any) -> None:
        lifetimes = self.lifetimes
        if not lifetimes:
            return
        for expr in exprs:
            for found in post_order(expr):
                lifetime = lifetimes.get(found) if isinstance(found, Var) else None
                if lifetime is None:
                    continue
                if len(self.loops) > lifetime.depth:
                    loop = self.loops[lifetime.depth]
                    first = last = loop.first
                    loop.touched.append(lifetime)
                else:
                    first = last = self.position
                lifetime.first = first if lifetime.first < 0 else lifetime.first
                lifetime.last = max(lifetime.last, last)


class _Planner:
    """Gives every allocation its memory, in the order in which lifetimes begin."""

    def __init__(self, liveness: _Liveness) -> None:
        self.spans = liveness.spans
        self.blocks: list[_Block] = []
        self.block_of: dict[Var, _Block] = {}
        pools: dict[Any, list[_Block]] = defaultdict(list)
        used = [lifetime for lifetime in liveness.lifetimes.values() if lifetime.first >= 0]
        for lifetime in sorted(used, key=lambda lifetime: lifetime.first):
            node = lifetime.node
            elements = _elements(node)
            block = None
            if _may_share(node, elements):
                pool = pools[lifetime.place, node.buffer_var.storage_scope, node.dtype]
                block = self._find(pool, lifetime, elements)
            else:
                pool = []
            if block is None:
                block = _Block(node.buffer_var, node.dtype, [], elements, -1)
                self.blocks.append(block)
                pool.append(block)
            block.users.append(lifetime)
            block.last = lifetime.last
            block.elements = _larger(block.elements, elements)
            self.block_of[node.buffer_var] = block

    def _find(self, pool: list[_Block], lifetime: _Lifetime, elements: PrimExpr) -> _Block | None:
        """The block whose size fits best among those that are free, or that this statement frees."""
        best: tuple[float, _Block] | None = None
        for block in pool:
            if block.last >= lifetime.first and not self._frees(block, lifetime):
                continue
            badness = _badness(block.elements, elements)
            if badness is not None and (best is None or badness < best[0]):
                best = (badness, block)
        return None if best is None else best[1]

    def _frees(self, block: _Block, lifetime: _Lifetime) -> bool:
        """True if the first statement to write the new buffer is the last to read the old one, element by element."""
        span = self.spans.get(lifetime.first)
        if span is None or span.last != block.last or isinstance(span.stmt, AttrStmt):
            return False
        old = block.users[-1].node
        if _badness(_elements(old), _elements(lifetime.node)) != 0:
            return False
        return can_run_in_place(span.stmt, lifetime.node.buffer_var, old.buffer_var)


def _elements(node: Allocate) -> PrimExpr:
    total: PrimExpr = operators.const(1, node.extents[0].dtype if node.extents else "int32")
    for extent in node.extents:
        total = operators.multiply(total, extent)
    return total


def _may_share(node: Allocate, elements: PrimExpr) -> bool:
    scope = node.buffer_var.storage_scope
    if scope in _REGISTER_SCOPES or scope.startswith(_REGISTER_KINDS) or node.dtype.is_handle:
        return False
    bits = node.dtype.bits * node.dtype.lanes
    return not (isinstance(elements, IntImm) and elements.value * bits <= _SMALL_BITS)


def _badness(available: PrimExpr, wanted: PrimExpr) -> float | None:
    """How badly memory of one size serves for another: 0 for equal sizes; None if it does not."""
    if isinstance(available, IntImm) and isinstance(wanted, IntImm):
        large, small = max(available.value, wanted.value), min(available.value, wanted.value)
        if small <= 0 or large > small * _MATCH_RANGE:
            return None
        # Memory that is too small would have to grow: worse than any that is too large.
        return large / small - 1 + (0 if available.value >= wanted.value else _MATCH_RANGE)
    if isinstance(available, IntImm) or isinstance(wanted, IntImm):
        return None
    return 0 if expr_deep_equal(available, wanted) else 1


def _larger(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return a if expr_deep_equal(a, b) else operators.maximum(a, b)


class _Rewriter(Mutator):
    """Puts the blocks in their places and the accesses on them."""

    memoize = True

    def __init__(self, planner: _Planner, lifetimes: dict[Var, _Lifetime]) -> None:
        super().__init__()
        self.lifetimes = lifetimes
        self.block_of = planner.block_of
        self.at: dict[Stmt | None, list[_Block]] = defaultdict(list)
        for block in planner.blocks:
            self.at[block.users[0].place].append(block)

    def visit_var(self, node: Var) -> Var:
        block = self.block_of.get(node)
        return node if block is None else block.variable

    def visit_allocate(self, node: Allocate) -> Stmt:
        if node.buffer_var in self.lifetimes:
            return self.visit(node.body)  # type: ignore[no-any-return]
        return node.map_children(self.visit)

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        return made.replace(body=self.around(node, made.body)) if node in self.at else made

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made: AttrStmt = node.map_children(self.visit)
        block = self.block_of.get(node.node) if isinstance(node.node, Var) else None
        if block is not None:
            made = made.replace(node=block.variable)
        return made.replace(body=self.around(node, made.body)) if node in self.at else made

    def around(self, place: Stmt | None, body: Stmt) -> Stmt:
        """The body with the memory of a place allocated around it."""
        for block in reversed(self.at.get(place, ())):
            first = block.users[0].node
            if len(block.users) == 1:
                body = first.replace(extents=(block.elements,), body=body)
            else:
                body = Allocate(
                    block.variable, block.dtype, [block.elements], True, body, first.annotations, first.span
                )
        return body


def storage_rewrite(stmt: Stmt) -> Stmt:
    """The statement with its allocations moved and shared; see the module's text."""
    liveness = _Liveness()
    liveness.visit(stmt)
    if not liveness.lifetimes:
        return stmt
    rewriter = _Rewriter(_Planner(liveness), liveness.lifetimes)
    return rewriter.around(None, rewriter.visit(stmt))


@dataclass(frozen=True)
class StorageRewrite(PrimFuncPass):
    """Moves allocations out of loops and lets buffers share memory."""

    name = "tir.StorageRewrite"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(storage_rewrite(function.body))
