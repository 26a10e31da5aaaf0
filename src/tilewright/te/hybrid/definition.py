"""Which memory of a script must be zeroed, because it is read or returned before all of it was written.

Emulation allocates with ``numpy.zeros``, so compiled scripts must see zeros too. Most scripts write before they read:
what is certainly written is tracked through the program, one fact per store. A fact has, for every dimension, the index
that was stored, or None if all indices of the dimension were.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Var
from tilewright.ir.functor import Mutator, free_vars, post_order
from tilewright.ir.structural import structural_equal
from tilewright.support.recursion import with_recursion_room
from tilewright.te.hybrid.symbols import reads_memory
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import (
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    stmt_seq,
)

Fact = tuple[PrimExpr | None, ...]
_THREADS = ("thread_extent", "virtual_thread")


class _Writes:
    """Follows what is certainly written of one tensor. ``reads_unwritten`` is set at a read that no fact covers."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.analyzer = Analyzer()
        self.reads_unwritten = False

    def walk(self, stmt: Stmt, facts: list[Fact]) -> list[Fact]:
        """The facts that hold after a statement, given those that hold before it."""
        if isinstance(stmt, SeqStmt):
            for part in stmt.seq:
                facts = self.walk(part, facts)
            return facts
        if isinstance(stmt, For):
            self.check(stmt.extent, facts)
            return self.loop(stmt.loop_var, stmt.extent, stmt.body, facts)
        if isinstance(stmt, AttrStmt) and stmt.attr_key in _THREADS and isinstance(stmt.node, IterVar):
            return self.loop(stmt.node.var, stmt.value, stmt.body, facts)
        if isinstance(stmt, IfThenElse):
            self.check(stmt.condition, facts)
            after = self.walk(stmt.then_case, facts)
            otherwise = facts if stmt.else_case is None else self.walk(stmt.else_case, facts)
            return [fact for fact in after if any(_same(fact, other) for other in otherwise)]
        if isinstance(stmt, ProducerStore):
            for expr in (stmt.value, *stmt.indices):
                self.check(expr, facts)
            # An index that is read from memory may have another value when it is read again.
            if stmt.producer is not self.tensor or any(reads_memory(index) for index in stmt.indices):
                return facts
            return [*facts, self.fact(stmt)]
        if isinstance(stmt, (AttrStmt, LetStmt)):
            self.check(stmt.value, facts)
        for child in stmt.children():
            if isinstance(child, Stmt):
                facts = self.walk(child, facts)
            elif isinstance(child, PrimExpr):
                self.check(child, facts)
        return facts

    def fact(self, store: ProducerStore) -> Fact:
        """The fact of one store. The only index of a dimension of one element is all of them."""
        return tuple(
            None if isinstance(extent, IntImm) and extent.value == 1 else self.analyzer.simplify(index)
            for index, extent in zip(store.indices, self.tensor.shape, strict=True)
        )

    def loop(self, variable: Var, extent: PrimExpr, body: Stmt, facts: list[Fact]) -> list[Fact]:
        """Facts after a loop: what every iteration writes at the loop variable is then written everywhere."""
        inside = self.walk(body, facts)[len(facts) :]
        runs = self.analyzer.can_prove(operators.greater(extent, 0))
        made = list(facts)
        for fact in inside:
            widened: list[PrimExpr | None] = []
            used = False
            for index, size in zip(fact, self.tensor.shape, strict=True):
                whole = index is variable and not used and self.analyzer.can_prove_equal(extent, size)
                used = used or whole
                widened.append(None if whole else index)
            mentioned = any(index is not None and variable in set(free_vars(index)) for index in widened)
            if not mentioned and (used or runs):
                made.append(tuple(widened))
        return made

    def check(self, expr: PrimExpr, facts: list[Fact]) -> None:
        """Note a read of what is not certainly written."""
        for part in post_order(expr):
            if isinstance(part, ProducerLoad) and part.producer is self.tensor:
                indices = tuple(self.analyzer.simplify(index) for index in part.indices)
                if not any(_covers(fact, indices) for fact in facts):
                    self.reads_unwritten = True


def _covers(fact: Fact, indices: Sequence[PrimExpr]) -> bool:
    return all(one is None or structural_equal(one, index) for one, index in zip(fact, indices, strict=True))


def _same(one: Fact, other: Fact) -> bool:
    return all(
        a is b or (a is not None and b is not None and structural_equal(a, b))
        for a, b in zip(one, other, strict=True)
    )


def reads_unwritten(tensor: Tensor, body: Stmt) -> bool:
    """True if the body may read an element of the tensor that it has not written."""
    writes = _Writes(tensor)
    writes.walk(body, [])
    return writes.reads_unwritten


def writes_all(tensor: Tensor, body: Stmt) -> bool:
    """True if the body certainly writes every element of the tensor, before it reads it."""
    writes = _Writes(tensor)
    facts = writes.walk(body, [])
    return not writes.reads_unwritten and any(all(index is None for index in fact) for fact in facts)


def has_threads(body: Stmt) -> bool:
    """True if the body binds a loop to threads."""
    return any(isinstance(part, AttrStmt) and part.attr_key in _THREADS for part in post_order(body))


class _FillMemory(Mutator):
    """Fills the memory inside a statement where it may be read unwritten."""

    def visit_producer_realize(self, node: ProducerRealize) -> Stmt:
        made = node.map_children(self.visit)
        tensor = node.producer
        assert isinstance(tensor, Tensor)
        # Threads that share memory would each fill all of it, at different times.
        if node.storage_scope == "shared" or not reads_unwritten(tensor, node.body):
            return made
        return made.replace(body=stmt_seq(zeros(tensor), made.body))


@with_recursion_room
def with_defined_memory(body: Stmt, outputs: Sequence[Tensor]) -> Stmt:
    """The body with zeros stored first where it needs them.

    Outputs that threads write are left as they are: a loop around the threads would run elsewhere.
    """
    made: Stmt = _FillMemory().visit(body)
    if has_threads(body):
        return made
    return stmt_seq(*[zeros(tensor) for tensor in outputs if not writes_all(tensor, body)], made)


def zeros(tensor: Tensor) -> Stmt:
    """Loops that store zero everywhere."""
    indices = [
        Var(f"{tensor.name}.zero{position}", extent.dtype) for position, extent in enumerate(tensor.shape)
    ]
    made: Stmt = ProducerStore(tensor, operators.const(0, tensor.dtype), indices)
    for variable, extent in zip(reversed(indices), reversed(tensor.shape), strict=True):
        made = For(variable, 0, extent, ForKind.SERIAL, made)
    return made
