"""Inserts barriers between accesses of different threads to shared memory.

A barrier is needed where a thread may read what another one wrote, or overwrite what another one has yet to read:
between statements of a sequence, and from one iteration of a loop to the next. Accesses with the same thread-dependent
index do not conflict, because each thread accesses its own element. Barriers are placed as late as possible, just
before the statement that needs one. A kernel under the attribute ``explicit_sync`` has its barriers already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, Var
from tilewright.ir.functor import free_vars
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import EXPLICIT_SYNC, AttrStmt, Evaluate, For, Stmt, While, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator
from tilewright.tir.transform.lib.storage_access import Access, AccessAnalysis, Entry, Kind


class _Planner(AccessAnalysis):
    """Finds the statements that need a barrier ahead of them."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.before: dict[int, Stmt] = {}

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key != EXPLICIT_SYNC:
            super().visit_attr_stmt(node)

    def summarize(self, entries: list[Entry], loop: For | While | None) -> list[Access]:
        reads: list[Access] = []
        writes: list[Access] = []
        for entry in entries:
            if any(self._conflict(reads, writes, access, None) for access in _head(entry.accesses)):
                self._insert(entry)
                reads, writes = [], []
            for access in entry.accesses:
                if access.kind is Kind.BARRIER:
                    reads, writes = [], []
                else:
                    (reads if access.kind is Kind.READ else writes).append(access)
        if loop is None:
            return self._shown(entries)
        self._next_iteration(entries, reads, writes, loop)
        # The half that the last iteration filled is read after the loop.
        return [
            access if access.buffer in self._double_buffers else replace(access, fills_double_buffer=False)
            for access in self._shown(entries)
        ]

    def _next_iteration(
        self, entries: list[Entry], reads: list[Access], writes: list[Access], loop: For | While
    ) -> None:
        """Checks the unordered accesses at the end of one iteration against the start of the next."""
        for entry in entries:
            if id(entry.stmt) in self.before or not (reads or writes):
                return
            if any(self._conflict(reads, writes, access, loop) for access in _head(entry.accesses)):
                self._insert(entry)
                return
            if any(access.kind is Kind.BARRIER for access in entry.accesses):
                return

    def _insert(self, entry: Entry) -> None:
        if self.divergence:
            raise LoweringError(
                f"a barrier for {self.scope} memory is needed inside a condition that threads decide differently; "
                "move the condition, or compute the shared stage outside it"
            )
        self.before[id(entry.stmt)] = entry.stmt

    def _shown(self, entries: list[Entry]) -> list[Access]:
        """The accesses visible outside the sequence: those up to the first barrier, the barrier, and those after the
        last."""
        flat: list[Access] = []
        for entry in entries:
            if id(entry.stmt) in self.before:
                flat.append(Access(Kind.BARRIER))
            flat.extend(entry.accesses)
        places = [place for place, access in enumerate(flat) if access.kind is Kind.BARRIER]
        return flat if not places else [*flat[: places[0] + 1], *flat[places[-1] + 1 :]]

    def _conflict(
        self, reads: list[Access], writes: list[Access], access: Access, loop: For | While | None
    ) -> bool:
        earlier = writes if access.kind is Kind.READ else reads
        return any(self._conflicting(other, access, loop) for other in earlier)

    def _conflicting(self, earlier: Access, later: Access, loop: For | While | None) -> bool:
        if earlier.buffer is not later.buffer:
            return False
        if (
            earlier.index is not None
            and later.index is not None
            and expr_deep_equal(earlier.index, later.index)
        ):
            variables = free_vars(later.index)
            carried = isinstance(loop, For) and any(variable is loop.loop_var for variable in variables)
            if not carried and any(variable in self._thread_vars() for variable in variables):
                return False
        # One half of a double buffer is read while the other one is filled, until the last one that was filled is read.
        spare = earlier.fills_double_buffer and later.kind is Kind.READ and loop is None
        return not spare or _certainly_overlap(earlier, later)

    def _thread_vars(self) -> set[Var]:
        axes: list[IterVar] = self.threads
        return {axis.var for axis in axes if axis.thread_tag.startswith("threadIdx")}


def _certainly_overlap(one: Access, other: Access) -> bool:
    """True if two accesses have elements in common for certain."""
    if (
        one.touched is None
        or other.touched is None
        or not (one.touched.is_bounded and other.touched.is_bounded)
    ):
        return False
    analyzer = Analyzer()
    return analyzer.can_prove(operators.less_equal(one.touched.min_value, other.touched.max_value)) and (
        analyzer.can_prove(operators.less_equal(other.touched.min_value, one.touched.max_value))
    )


def _head(accesses: tuple[Access, ...]) -> list[Access]:
    """The accesses up to the first barrier."""
    head: list[Access] = []
    for access in accesses:
        if access.kind is Kind.BARRIER:
            break
        head.append(access)
    return head


class _Inserter(StmtMutator):
    def __init__(self, scope: str, before: dict[int, Stmt]) -> None:
        super().__init__()
        self.scope = scope
        self.before = before

    def visit(self, node: Any) -> Any:
        made = super().visit(node)
        if id(node) not in self.before:
            return made
        return stmt_seq(Evaluate(operators.call("tvm_storage_sync", "int32", [self.scope])), made)


def insert_barriers(body: Stmt, scope: str) -> Stmt:
    """The body with barriers for one storage scope."""
    planner = _Planner(scope)
    planner.visit(body)
    return _Inserter(scope, planner.before).visit(body) if planner.before else body


@dataclass(frozen=True)
class ThreadSync(PrimFuncPass):
    """Insert barriers for the memory of one storage scope: "shared", "shared.dyn" or "warp"."""

    storage_scope: str
    name = "tir.ThreadSync"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if self.storage_scope == "global":
            raise LoweringError(
                "a barrier across all blocks of a kernel is not supported: write two kernels instead"
            )
        return function.with_body(insert_barriers(function.body, self.storage_scope))
