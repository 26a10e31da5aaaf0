"""Gives threads to operations that are written as statements.

Loops that are marked parallel, and loops whose iterations write different elements and read none that others write,
become kernels with a thread for each iteration. What is left runs in a kernel of one thread: each statement outside of
a parallel loop is a kernel of its own, so that the order of the statements holds. Memory that an iteration has to
itself becomes a part of memory that all of them share; a condition or a name whose value is in the device's memory
moves into each kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import BufferLoad, Call, IntImm, Load, PrimExpr, Var
from tilewright.ir.functor import free_vars, post_order
from tilewright.ir.op import Op
from tilewright.ir.type import PointerType, PrimType
from tilewright.schedule.gpu.independent import is_independent
from tilewright.support.dtype import DataType
from tilewright.te.extern import ExternOp
from tilewright.te.operation import thread_axis
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
    stmt_seq,
)
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator

BLOCK: Final = 128
"""Threads of a block; each may have much to do, so that many blocks are better than large ones."""

KERNELS: Final = 64
"""Times that a loop on the host may start the kernels inside it."""

OWN_BYTES: Final = 1024
"""Memory of an iteration that stays the thread's own."""


@dataclass(frozen=True)
class Threaded:
    """A statement with threads, and how much of it runs in a single one."""

    body: Stmt
    has_single_thread: bool


def give_threads(operation: ExternOp, most_threads: int) -> Threaded | None:
    """The statement of an operation with threads; None if it calls what no kernel can call."""
    if any(_calls_outside(node) for node in post_order(operation.body)):
        return None
    host = _Host(min(BLOCK, most_threads))
    body = host.convert(operation.body)
    return Threaded(body, host.has_single_thread)


def _calls_outside(node: Any) -> bool:
    """True for a call of a function of the host."""
    return (
        isinstance(node, Call)
        and isinstance(node.op, Op)
        and node.op.name
        in (
            "tir.tvm_call_packed",
            "tir.tvm_call_cpacked",
            "tir.tvm_call_packed_lowered",
            "tir.call_extern",
            "tir.call_pure_extern",
            "tir.tvm_stack_make_array",
        )
    )


@dataclass
class _Scope:
    """What is around the statements of the host: names and conditions that each kernel takes along, outermost first."""

    carried: list[LetStmt | IfThenElse | AssertStmt] = field(default_factory=list)


class _Host:
    """Rewrites the statements that run before any thread does."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.has_single_thread = False
        self.scope = _Scope()
        self.renamed: dict[Var, Var] = {}

    def convert(self, stmt: Stmt) -> Stmt:
        """A statement of the host, with kernels in it."""
        if isinstance(stmt, SeqStmt):
            return self._sequence(stmt)
        if isinstance(stmt, Allocate):
            return self._allocation(stmt)
        if isinstance(stmt, AttrStmt):
            return stmt.replace(body=self.convert(stmt.body))
        if isinstance(stmt, LetStmt):
            return self._let(stmt)
        if isinstance(stmt, IfThenElse):
            return self._condition(stmt)
        if isinstance(stmt, For):
            return self._loop(stmt)
        return self._single(stmt)

    def _sequence(self, stmt: SeqStmt) -> Stmt:
        """Neighbours that need one thread share a kernel."""
        made: list[Stmt] = []
        waiting: list[Stmt] = []
        for part in stmt.seq:
            if self._needs_one_thread(part):
                waiting.append(part)
                continue
            if waiting:
                made.append(self._single(stmt_seq(*waiting)))
                waiting = []
            made.append(self.convert(part))
        if waiting:
            made.append(self._single(stmt_seq(*waiting)))
        return stmt_seq(*made)

    def _needs_one_thread(self, stmt: Stmt) -> bool:
        if isinstance(stmt, (Store, BufferStore, While)):
            return True
        if isinstance(stmt, For):
            return not self._runs_in_threads(stmt) and not self._runs_on_host(stmt)
        return not isinstance(stmt, (SeqStmt, Allocate, AttrStmt, LetStmt, IfThenElse))

    def _allocation(self, stmt: Allocate) -> Stmt:
        """Memory between kernels is the device's."""
        if not _is_known_to_host(stmt.extents, self.scope.carried):
            return self._single(stmt)
        data = stmt.buffer_var
        if data.storage_scope == "global":
            return stmt.replace(body=self.convert(stmt.body))
        made = Var(data.name, PointerType(PrimType(stmt.dtype), "global"))
        body = substitute(stmt.body, {data: made})
        return Allocate(made, stmt.dtype, stmt.extents, stmt.condition, self.convert(body))

    def _let(self, stmt: LetStmt) -> Stmt:
        if _is_known_to_host([stmt.value], self.scope.carried):
            return stmt.replace(body=self.convert(stmt.body))
        if _read_by(stmt.value) & _written_by(stmt.body):
            return self._single(stmt)
        self.scope.carried.append(stmt)
        made = self.convert(stmt.body)
        self.scope.carried.pop()
        return made

    def _condition(self, stmt: IfThenElse) -> Stmt:
        arms = [stmt.then_case] if stmt.else_case is None else [stmt.then_case, stmt.else_case]
        if _is_known_to_host([stmt.condition], self.scope.carried):
            made = [self.convert(arm) for arm in arms]
            return IfThenElse(stmt.condition, made[0], made[1] if len(made) > 1 else None)
        if any(_read_by(stmt.condition) & _written_by(arm) for arm in arms):
            return self._single(stmt)
        parts: list[Stmt] = []
        for number, arm in enumerate(arms):
            condition = stmt.condition if number == 0 else operators.logical_not(stmt.condition)
            self.scope.carried.append(IfThenElse(condition, arm))
            parts.append(self.convert(arm))
            self.scope.carried.pop()
        return stmt_seq(*parts)

    def _loop(self, stmt: For) -> Stmt:
        if isinstance(stmt.extent, IntImm) and stmt.extent.value <= 0:
            return stmt_seq()
        if isinstance(stmt.extent, IntImm) and stmt.extent.value == 1:
            return self.convert(substitute(stmt.body, {stmt.loop_var: stmt.min}))
        if self._runs_in_threads(stmt):
            return self._kernel(stmt)
        if self._runs_on_host(stmt):
            return stmt.replace(body=self.convert(stmt.body))
        return self._single(stmt)

    def _runs_in_threads(self, stmt: For) -> bool:
        is_parallel = stmt.kind in (ForKind.PARALLEL, ForKind.VECTORIZED) or is_independent(stmt)
        return is_parallel and _is_known_to_host([stmt.min, stmt.extent], self.scope.carried)

    def _runs_on_host(self, stmt: For) -> bool:
        """True for a loop of a few iterations with parallel loops inside."""
        few = isinstance(stmt.extent, IntImm) and stmt.extent.value <= KERNELS
        return few and any(
            isinstance(part, For) and (part.kind == ForKind.PARALLEL or is_independent(part))
            for part in _statements(stmt.body)
        )

    # ---- kernels ----

    def _single(self, stmt: Stmt) -> Stmt:
        """A kernel of one thread."""
        self.has_single_thread = True
        body, hoisted = _own_memory(stmt, None, operators.const(1))
        return _around(hoisted, self._launch(body, operators.const(1), 1))

    def _kernel(self, stmt: For) -> Stmt:
        """A kernel with a thread for each iteration."""
        extent = stmt.extent
        count = int(extent.value) if isinstance(extent, IntImm) else None
        threads = self.threads if count is None else min(self.threads, max(count, 1))
        block, thread = thread_axis("blockIdx.x"), thread_axis("threadIdx.x")
        number = operators.add(operators.multiply(block.var, threads), thread.var)
        iteration = operators.add(operators.cast(stmt.loop_var.dtype, number), stmt.min)
        body, hoisted = _own_memory(stmt.body, number, extent)
        body = substitute(body, {stmt.loop_var: iteration})
        if count is None or count % threads:
            body = IfThenElse(operators.less(number, extent), body)
        blocks = operators.floordiv(operators.add(extent, threads - 1), threads)
        return _around(hoisted, self._launch(body, blocks, threads, block, thread))

    def _launch(
        self, body: Stmt, blocks: PrimExpr, threads: int, block: Any = None, thread: Any = None
    ) -> Stmt:
        for outside in reversed(self.scope.carried):
            if isinstance(outside, IfThenElse):
                body = IfThenElse(outside.condition, body)
            else:
                body = outside.replace(body=body)
        block = thread_axis("blockIdx.x") if block is None else block
        thread = thread_axis("threadIdx.x") if thread is None else thread
        inner = AttrStmt(thread, "thread_extent", operators.const(threads), body)
        return AttrStmt(block, "thread_extent", operators.cast("int32", blocks), inner)


def _statements(stmt: Stmt) -> list[Stmt]:
    return [node for node in post_order(stmt) if isinstance(node, Stmt)]


def _read_by(*parts: Any) -> set[Var]:
    """The memory that expressions or statements read; what is passed to a function counts."""
    found: set[Var] = set()
    for part in parts:
        for node in post_order(part):
            if isinstance(node, Load):
                found.add(node.buffer_var)
            elif isinstance(node, BufferLoad):
                found.add(node.buffer.data)
            elif isinstance(node, Call):
                found |= _passed(node)
    return found


def _written_by(stmt: Stmt) -> set[Var]:
    """The memory that a statement writes; what is passed to a function counts."""
    found: set[Var] = set()
    for node in post_order(stmt):
        if isinstance(node, Store):
            found.add(node.buffer_var)
        elif isinstance(node, BufferStore):
            found.add(node.buffer.data)
        elif isinstance(node, Call):
            found |= _passed(node)
    return found


def _passed(call: Call) -> set[Var]:
    """The memory that a function is passed; where addresses are only compared, none."""
    if isinstance(call.op, Op) and call.op.name == "tir.same_address":
        return set()
    return {one for one in call.args if isinstance(one, Var) and one.dtype.is_handle}


def _is_known_to_host(parts: Sequence[PrimExpr], carried: Sequence[Any]) -> bool:
    """True if nothing is read from memory, directly or through a name that kernels take along."""
    names = {stmt.var for stmt in carried if isinstance(stmt, LetStmt)}
    return not any(_read_by(part) or names & set(free_vars(part)) for part in parts)


def _around(memory: Sequence[Allocate], body: Stmt) -> Stmt:
    for stmt in reversed(memory):
        body = stmt.replace(body=body)
    return body


class _OwnMemory(ScopedMutator):
    """Moves memory of one iteration into memory of all of them."""

    def __init__(self, number: PrimExpr | None, count: PrimExpr) -> None:
        super().__init__()
        self.number = number
        self.count = count
        self.hoisted: list[Allocate] = []
        self.moved: dict[Var, tuple[Var, PrimExpr]] = {}

    def visit_allocate(self, node: Allocate) -> Stmt:
        size: PrimExpr = operators.const(1)
        for extent in node.extents:
            size = operators.multiply(size, extent)
        is_small = isinstance(size, IntImm) and size.value * _bytes(node.dtype) <= OWN_BYTES
        if is_small or _read_by(size):
            data = node.buffer_var
            if data.storage_scope == "local":
                return node.map_children(self.visit)
            made = Var(data.name, PointerType(PrimType(node.dtype), "local"))
            body = substitute(node.body, {data: made})
            return Allocate(made, node.dtype, node.extents, node.condition, self.visit(body))
        made = Var(node.buffer_var.name, PointerType(PrimType(node.dtype), "global"))
        total = operators.multiply(self.count, size)
        self.hoisted.append(Allocate(made, node.dtype, [total], operators.const_true(), node.body))
        start = operators.const(0) if self.number is None else operators.multiply(self.number, size)
        self.moved[node.buffer_var] = (made, start)
        return self.visit(node.body)  # type: ignore[no-any-return]

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        found = self.moved.get(node.buffer_var)
        if found is None:
            return made
        return made.replace(buffer_var=found[0], index=operators.add(made.index, found[1]))

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(self.visit)
        found = self.moved.get(node.buffer_var)
        if found is None:
            return made
        return made.replace(buffer_var=found[0], index=operators.add(made.index, found[1]))

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        # One thread does what is inside a kernel.
        return made.replace(kind=ForKind.SERIAL) if made.kind == ForKind.PARALLEL else made


def _own_memory(stmt: Stmt, number: PrimExpr | None, count: PrimExpr) -> tuple[Stmt, list[Allocate]]:
    """A kernel's body, and the memory to allocate around the kernel."""
    rewriter = _OwnMemory(number, count)
    return rewriter.visit(stmt), rewriter.hoisted


def _bytes(dtype: DataType) -> int:
    return max(dtype.bits * dtype.lanes // 8, 1)
