"""The accesses of each statement of device code to memory of one storage scope, in order.

``AccessAnalysis`` walks a program and passes each sequence of statements to ``summarize``, which a pass overrides: it
sees the entries of the sequence (one per statement, with its accesses in order), may decide something about the
statements, and returns the accesses that are visible outside the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tilewright.arith.int_set import IntervalSet, IntSet, as_interval
from tilewright.arith.int_set_eval import relax
from tilewright.ir.expr import Call, IntImm, IterVar, Load, PrimExpr, Ramp, Range, StringImm, Var
from tilewright.ir.functor import free_vars
from tilewright.ir.op import Op
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.stmt import (
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
    While,
)

_READ, _WRITE = 1, 2


class Kind(Enum):
    """The kind of an access; a barrier orders everything before it with everything after."""

    READ = "read"
    WRITE = "write"
    BARRIER = "barrier"


@dataclass(frozen=True, eq=False)
class Access:
    """One access: the memory, the index where it is one expression, whether it writes the spare half of a double
    buffer, and the elements of a double buffer that threads touch together, where they are known."""

    kind: Kind
    buffer: Var | None = None
    index: PrimExpr | None = None
    fills_double_buffer: bool = False
    touched: IntervalSet | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """A statement of a sequence with its accesses."""

    stmt: Stmt
    accesses: tuple[Access, ...]


class AccessAnalysis(StatementVisitor):
    """Collects accesses to memory of one scope."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope
        self.sequence: list[Entry] = []
        self.current: list[Access] = []
        self.in_device = False
        self.threads: list[IterVar] = []
        self.divergence = 0
        self._double_buffers: set[Var] = set()
        self._halved: set[Var] = set()
        self._thread_ranges: dict[Var, IntervalSet] = {}

    def summarize(self, entries: list[Entry], loop: For | While | None) -> list[Access]:
        """The accesses of a sequence as its surroundings see them."""
        raise NotImplementedError

    # ---- statements ----

    def _leaf(self, node: Stmt) -> None:
        """A statement whose accesses are all in ``current`` now."""
        if self.current:
            self.sequence.append(Entry(node, tuple(self.current)))
            self.current = []

    def _body(self, body: Stmt, loop: For | While | None = None) -> list[Access]:
        """The summary of a body that is a separate sequence."""
        outer, self.sequence = self.sequence, []
        outer_current, self.current = self.current, []
        self.visit(body)
        found = self.summarize(self.sequence, loop)
        self.sequence, self.current = outer, outer_current
        return found

    def visit_seq_stmt(self, node: SeqStmt) -> None:
        for part in node.seq:
            self.visit(part)

    def visit_store(self, node: Store) -> None:
        for part in (node.value, node.index, node.predicate):
            self.visit(part)
        fills = node.buffer_var in self._double_buffers
        self._record(Kind.WRITE, node.buffer_var, node.index, fills)
        self._leaf(node)

    def visit_evaluate(self, node: Evaluate) -> None:
        self.visit(node.value)
        self._leaf(node)

    def visit_let_stmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        self.current += self._body(node.body)
        self._leaf(node)

    def visit_assert_stmt(self, node: AssertStmt) -> None:
        self.visit(node.condition)
        self.current += self._body(node.body)
        self._leaf(node)

    def visit_for(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        divergent = self._divergent(node.min) or self._divergent(node.extent)
        self.divergence += divergent
        inside = self._body(node.body, node)
        self.divergence -= divergent
        domain = {node.loop_var: IntervalSet.from_range(Range.from_min_extent(node.min, node.extent))}
        for access in inside:
            if access.touched is not None:
                access = replace(access, touched=relax(access.touched, domain))
            self.current.append(_without_index(access, node.loop_var))
        self._leaf(node)

    def visit_while(self, node: While) -> None:
        self.visit(node.condition)
        divergent = self._divergent(node.condition)
        self.divergence += divergent
        self.current += self._body(node.body, node)
        self.divergence -= divergent
        self._leaf(node)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        divergent = self._divergent(node.condition)
        self.divergence += divergent
        self.current += self._body(node.then_case)
        if node.else_case is not None:
            self.current += self._body(node.else_case)
        self.divergence -= divergent
        self._leaf(node)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            self._thread(node)
        elif node.attr_key == "double_buffer_write" and isinstance(node.node, Var):
            self._double_buffers.add(node.node)
            self._halved.add(node.node)
            self.current += self._body(node.body)
            self._double_buffers.discard(node.node)
            self._leaf(node)
        else:
            self.current += self._body(node.body)
            self._leaf(node)

    def _thread(self, node: AttrStmt) -> None:
        outside = not self.in_device
        self.in_device = True
        self.threads.append(node.node)
        self._thread_ranges[node.node.var] = IntervalSet.from_range(Range(0, node.value))
        found = self._body(node.body)
        self.threads.pop()
        self.in_device = not outside
        if not outside:
            self.current += found
            self._leaf(node)

    def visit_default(self, node: object) -> None:
        if not isinstance(node, Stmt):
            super().visit_default(node)
            return
        for child in node.children():
            if isinstance(child, Stmt):
                self.current += self._body(child)
            else:
                self.visit(child)
        self._leaf(node)

    # ---- expressions ----

    def visit_load(self, node: Load) -> None:
        self.visit(node.index)
        self._record(Kind.READ, node.buffer_var, node.index)

    def visit_call(self, node: Call) -> None:
        name = node.op.name if isinstance(node.op, Op) else ""
        if name == "tir.tvm_storage_sync":
            if isinstance(node.args[0], StringImm) and node.args[0].value == self.scope:
                self.current.append(Access(Kind.BARRIER))
        elif name == "tir.address_of":
            # What happens through the pointer is not known.
            load = node.args[0]
            if isinstance(load, Load):
                self.visit(load.index)
                self._record(Kind.READ, load.buffer_var, None)
                self._record(Kind.WRITE, load.buffer_var, None)
        elif name == "tir.tvm_access_ptr":
            self._through_pointer(node)
        else:
            self.visit_default(node)

    def _through_pointer(self, node: Call) -> None:
        _, buffer, offset, extent, mask = node.args
        self.visit(offset)
        self.visit(extent)
        if isinstance(buffer, Var):
            flags = mask.value if isinstance(mask, IntImm) else _READ | _WRITE
            if flags & _READ:
                self._record(Kind.READ, buffer, None)
            if flags & _WRITE:
                self._record(Kind.WRITE, buffer, None, buffer in self._double_buffers)

    def _record(self, kind: Kind, buffer: Var, index: PrimExpr | None, fills: bool = False) -> None:
        if self.in_device and buffer.storage_scope == self.scope:
            touched = None
            if buffer in self._halved and (
                isinstance(index, Ramp) or (index is not None and index.dtype.lanes == 1)
            ):
                touched = relax(as_interval(IntSet.vector(index)), self._thread_ranges)
            self.current.append(Access(kind, buffer, index, fills, touched))

    def _divergent(self, condition: PrimExpr) -> bool:
        """True if threads of one block may take different branches, or run a loop different numbers of times."""
        inside = {axis.var for axis in self.threads if axis.thread_tag.startswith("threadIdx")}
        return any(variable in inside for variable in free_vars(condition))


def _without_index(access: Access, loop_var: Var) -> Access:
    """The access as seen from outside the loop, where the loop's variable has no value."""
    if access.index is not None and any(variable is loop_var for variable in free_vars(access.index)):
        return replace(access, index=None)
    return access
