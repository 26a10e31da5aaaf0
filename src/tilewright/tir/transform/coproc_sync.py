"""Synchronisation with a coprocessor.

Statements in a ``coproc_scope`` are queued on a coprocessor, which works beside the host. Three things keep memory that
both use in order, each a call of an operator named after the coprocessor's axis (``tir.cop.coproc_sync`` for ``cop``):

- ``coproc_sync`` waits for the coprocessor, before the host reads what it wrote or overwrites what it uses;
- ``coproc_read_barrier`` makes what the host wrote visible before the coprocessor reads it, and
  ``coproc_write_barrier`` the other way: both with the memory, the bits of an element, and the range of elements;
- ``coproc_dep_push`` and ``coproc_dep_pop`` order the coprocessor's own queues (``lib/coproc_queues.py``).

A function that never waits does so at its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilewright.arith.int_set import IntervalSet, IntSet, union_sets
from tilewright.arith.int_set_eval import relax
from tilewright.ir.expr import Call, IntImm, IterVar, Load, PrimExpr, Ramp, Range, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import DataType
from tilewright.support.errors import LoweringError
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, For, IfThenElse, Stmt, Store, While, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.coproc_queues import Insertions, QueueTokens
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_READ, _WRITE = 1, 2


@dataclass(frozen=True, eq=False)
class _Access:
    """One access of the host or of the coprocessor to elements of a memory."""

    buffer: Var
    dtype: DataType
    writes: bool
    on_coprocessor: bool
    touched: IntervalSet


@dataclass(frozen=True, eq=False)
class _Waited:
    """A point in a summary at which the host has waited for the coprocessor."""


_Event = _Access | _Waited


@dataclass(frozen=True, eq=False)
class _Entry:
    stmt: Stmt
    events: tuple[_Event, ...]

    def accesses(self, *, on_coprocessor: bool, writes: bool | None = None) -> list[_Access]:
        """The accesses of one side."""
        return [
            event
            for event in self.events
            if isinstance(event, _Access)
            and event.on_coprocessor == on_coprocessor
            and writes in (None, event.writes)
        ]


class _Planner(StatementVisitor):
    """Visits sequences of statements from the inside out and notes what is inserted before and after statements."""

    def __init__(self, axis: IterVar, prefix: str) -> None:
        super().__init__()
        self.axis, self.prefix = axis, prefix
        self.shared: set[Var] | None = None
        self.before: Insertions = defaultdict(list)
        self.after: Insertions = defaultdict(list)
        self.synchronised = False
        self._inside = False
        self._sequence: list[_Entry] = []
        self._current: list[_Event] = []

    def plan(self, body: Stmt) -> None:
        """Plan the whole function: first which memory both sides use, then what orders those uses."""
        everything = [event for event in self._body(body, None) if isinstance(event, _Access)]
        sides = [
            {each.buffer for each in everything if each.on_coprocessor is side} for side in (True, False)
        ]
        self.shared = sides[0] & sides[1]
        self._body(body, None, at_end=True)
        if not self.synchronised:
            self.after[body].append(self._call("coproc_sync"))

    # ---- one sequence ----

    def _summary(self, entries: Sequence[_Entry], loop: Stmt | None, at_end: bool) -> list[_Event]:
        if self.shared is None:
            return [event for entry in entries for event in entry.events]
        pending = self._plan_sync(entries, loop, at_end)
        self._plan_write_barriers(entries, loop)
        self._plan_read_barriers(entries, loop)
        host = [access for entry in entries for access in entry.accesses(on_coprocessor=False)]
        return [*pending, *host]

    def _plan_sync(self, entries: Sequence[_Entry], loop: Stmt | None, at_end: bool) -> list[_Event]:
        """Wait where host and coprocessor are in conflict; what the coprocessor may still be doing at the end."""
        pending: list[_Event] = []
        waited = False
        for number, entry in enumerate(entries):
            host = entry.accesses(on_coprocessor=False)
            if number and any(_conflicts(access, pending) for access in host):
                self._wait(entries[number - 1].stmt)
                pending, waited = [], True
            for event in entry.events:
                if isinstance(event, _Waited):
                    pending, waited = [], True
                elif event.on_coprocessor:
                    pending.append(event)
        carried = loop is not None and any(
            _conflicts(access, pending)
            for entry in entries
            for access in entry.accesses(on_coprocessor=False)
        )
        if pending and (at_end or carried):
            self._wait(entries[-1].stmt)
            pending, waited = [], True
        return [*([_Waited()] if waited else []), *pending]

    def _wait(self, stmt: Stmt) -> None:
        self.after[stmt].insert(0, self._call("coproc_sync"))
        self.synchronised = True

    def _plan_write_barriers(self, entries: Sequence[_Entry], loop: Stmt | None) -> None:
        """Show the host what the coprocessor wrote, after the statement before the one that reads it."""
        written: dict[Var, list[_Access]] = {}
        for number, entry in enumerate([*entries, *(entries if loop is not None else ())]):
            for access in entry.accesses(on_coprocessor=False, writes=False):
                if access.buffer in written:
                    place = entries[min(number, len(entries)) - 1].stmt
                    self.after[place].append(self._barrier("write", written.pop(access.buffer)))
            if number < len(entries):
                for access in entry.accesses(on_coprocessor=True, writes=True):
                    written.setdefault(access.buffer, []).append(access)

    def _plan_read_barriers(self, entries: Sequence[_Entry], loop: Stmt | None) -> None:
        """Show the coprocessor what the host wrote, before the statement after the one that writes it."""
        read: dict[Var, list[_Access]] = {}
        backwards = [*reversed(entries)]
        for number, entry in enumerate([*backwards, *(backwards if loop is not None else ())]):
            for access in entry.accesses(on_coprocessor=False, writes=True):
                if access.buffer in read:
                    place = backwards[min(number, len(entries)) - 1].stmt
                    self.before[place].append(self._barrier("read", read.pop(access.buffer)))
            if number < len(entries):
                for access in entry.accesses(on_coprocessor=True, writes=False):
                    read.setdefault(access.buffer, []).append(access)

    def _barrier(self, kind: str, accesses: Sequence[_Access]) -> Stmt:
        touched = union_sets([access.touched for access in accesses])
        first = accesses[0]
        if not touched.is_bounded:
            raise LoweringError(
                f"the elements of {first.buffer} that need a {kind} barrier cannot be bounded"
            )
        box = touched.cover_range(Range(0, 0))
        return self._call(f"coproc_{kind}_barrier", first.buffer, first.dtype.bits, box.min, box.extent)

    def _call(self, name: str, *args: PrimExpr | int) -> Stmt:
        return Evaluate(Call("int32", Op.get(f"{self.prefix}.{name}"), list(args)))

    # ---- statements ----

    def _body(self, body: Stmt, loop: Stmt | None, at_end: bool = False) -> list[_Event]:
        outer = self._sequence, self._current
        self._sequence, self._current = [], []
        self.visit(body)
        found = self._summary(self._sequence, loop, at_end)
        self._sequence, self._current = outer
        return found

    def _leaf(self, node: Stmt) -> None:
        if self._current:
            self._sequence.append(_Entry(node, tuple(self._current)))
            self._current = []

    def visit_store(self, node: Store) -> None:
        for part in (node.value, node.index, node.predicate):
            self.visit(part)
        self._record(node.buffer_var, node.value.dtype, True, _elements(node.index))
        self._leaf(node)

    def visit_evaluate(self, node: Evaluate) -> None:
        self.visit(node.value)
        self._leaf(node)

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        domain = {node.loop_var: IntSet.from_range(Range.from_min_extent(node.min, node.extent))}
        for event in self._body(node.body, node):
            if isinstance(event, _Access):
                event = replace(event, touched=relax(event.touched, domain))
            self._current.append(event)
        self._leaf(node)

    def visit_while(self, node: While) -> None:
        self.visit(node.condition)
        self._current += self._body(node.body, node)
        self._leaf(node)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        branches = [self._body(node.then_case, None)]
        branches.append([] if node.else_case is None else self._body(node.else_case, None))
        everywhere = all(any(isinstance(event, _Waited) for event in branch) for branch in branches)
        if everywhere:
            self._current.append(_Waited())
        self._current += [event for branch in branches for event in branch if isinstance(event, _Access)]
        self._leaf(node)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        outer = self._inside
        self._inside = outer or _is_scope(node, self.axis)
        self.visit(node.body)
        self._inside = outer

    # ---- expressions ----

    def visit_load(self, node: Load) -> None:
        self.visit(node.index)
        self._record(node.buffer_var, node.dtype, False, _elements(node.index))

    def visit_call(self, node: Call) -> None:
        if not (isinstance(node.op, Op) and node.op.name == "tir.tvm_access_ptr"):
            self.visit_default(node)
            return
        element, buffer, offset, extent, mask = node.args
        if isinstance(buffer, Var):
            flags = mask.value if isinstance(mask, IntImm) else _READ | _WRITE
            touched = IntSet.from_range(Range.from_min_extent(offset, extent))
            for flag in (_READ, _WRITE):
                if flags & flag:
                    self._record(buffer, element.dtype, flag == _WRITE, touched)

    def _record(self, buffer: Var, dtype: DataType, writes: bool, touched: IntSet) -> None:
        if self.shared is None or buffer in self.shared:
            assert isinstance(touched, IntervalSet)
            self._current.append(_Access(buffer, dtype, writes, self._inside, touched))


def _elements(index: PrimExpr) -> IntSet:
    known = index.dtype.lanes == 1 or isinstance(index, Ramp)
    return IntSet.vector(index) if known else IntervalSet.everything()


def _conflicts(access: _Access, pending: Iterable[_Event]) -> bool:
    return any(
        isinstance(event, _Access) and event.buffer is access.buffer and (access.writes or event.writes)
        for event in pending
    )


def _is_scope(node: AttrStmt, axis: IterVar) -> bool:
    return node.attr_key == "coproc_scope" and node.node is axis


class _Inserter(StmtMutator):
    def __init__(self, before: Insertions, after: Insertions) -> None:
        super().__init__()
        self.before, self.after = before, after

    def visit(self, node: Stmt) -> Stmt:
        made: Stmt = super().visit(node)
        before, after = self.before.get(node, ()), self.after.get(node, ())
        return stmt_seq(*before, made, *after) if before or after else made


@dataclass(frozen=True)
class CoProcSync(PrimFuncPass):
    """Insert the synchronisation of a coprocessor with the host, and of its queues."""

    name = "tir.CoProcSync"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        scopes = [
            node
            for node in post_order(function.body)
            if isinstance(node, AttrStmt) and node.attr_key == "coproc_scope"
        ]
        if not scopes:
            return function
        axes = list(dict.fromkeys([scope.node for scope in scopes]))
        axis = axes[0]
        if len(axes) != 1 or not isinstance(axis, IterVar):
            raise LoweringError(
                "the coproc_scopes of a function are of one axis, which names the coprocessor"
            )
        prefix = f"tir.{axis.var.name}"
        planner = _Planner(axis, prefix)
        planner.plan(function.body)
        tokens = QueueTokens(axis, prefix)
        tokens.plan(function.body)
        before, after = planner.before, planner.after
        for stmt, calls in tokens.before.items():
            before[stmt] = [*before[stmt], *calls]
        for stmt, calls in tokens.after.items():
            after[stmt] = [*calls, *after[stmt]]
        return function.with_body(_Inserter(before, after).visit(function.body))
