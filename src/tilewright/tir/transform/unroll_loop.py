"""Unrolls loops.

Loops of kind UNROLLED are always unrolled. Serial loops are unrolled where the options or the enclosing pragmas
``auto_unroll_max_step`` and ``unroll_explicit`` allow it: an innermost nest of loops with at most that many steps.
Without ``explicit_unroll`` a loop stays, marked UNROLLED for the code generator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, StringImm, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.pass_config import UnrollLoopConfig, with_own_options
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import independent_nodes
from tilewright.tir.stmt import NO_OP, AttrStmt, Evaluate, For, ForKind, SeqStmt, Stmt, Store, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import (
    StmtMutator,
    with_one_definition,
)


class _Unroller(StmtMutator):
    """Counts, bottom-up, the steps of a nest and the depth of its loops; unrolls where the count allows it."""

    def __init__(self, options: UnrollLoopConfig) -> None:
        super().__init__()
        self.options = options
        self.steps = 0
        self.unrolled_depth = 0
        self.normal_depth = 0
        self.repeated_definitions = False

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        option = {
            "pragma_auto_unroll_max_step": "auto_max_step",
            "pragma_unroll_explicit": "explicit_unroll",
        }.get(node.attr_key)
        if option is None:
            return node.map_children(self.visit)
        value = node.value.value if isinstance(node.value, (IntImm, StringImm)) else None
        if not isinstance(value, int):
            raise LoweringError(f"{node.attr_key} needs an integer constant, not {node.value}")
        outer = self.options
        changed: Any = {option: value if option == "auto_max_step" else value != 0}
        self.options = dataclasses.replace(outer, **changed)
        body: Stmt = self.visit(node.body)
        self.options = outer
        return body

    def visit_store(self, node: Store) -> Stmt:
        self.steps += 1
        return node

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        self.steps += 1
        return node

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        steps, unrolled, normal = self.steps, self.unrolled_depth, self.normal_depth
        made = []
        for stmt in node.seq:
            self.steps = self.unrolled_depth = self.normal_depth = 0
            made.append(self.visit(stmt))
            steps += self.steps
            unrolled, normal = max(unrolled, self.unrolled_depth), max(normal, self.normal_depth)
        self.steps, self.unrolled_depth, self.normal_depth = steps, unrolled, normal
        if all(new is old for new, old in zip(made, node.seq, strict=True)):
            return node
        return stmt_seq(*made)

    def visit_for(self, node: For) -> Stmt:
        loop: For = node.map_children(self.visit)
        options = self.options
        # A difference of bounds may be a constant that is not written as one.
        extent = loop.extent if isinstance(loop.extent, IntImm) else Analyzer().simplify(loop.extent)
        count = extent.value if isinstance(extent, IntImm) else None
        asked = loop.kind == ForKind.UNROLLED
        if asked and count is None:
            raise LoweringError(
                f"loop {loop.loop_var.name} cannot be unrolled: its extent {loop.extent} is not a constant"
            )
        allowed = (
            loop.kind == ForKind.SERIAL
            and count is not None
            and self.normal_depth == 0
            and self.unrolled_depth <= options.auto_max_depth
            and (count * self.steps <= options.auto_max_step or count <= options.auto_max_extent)
        )
        single = count is not None and 0 <= count <= options.auto_max_extent == 1
        if count is None or not (asked or allowed):
            self.normal_depth += 1
            # A loop of one iteration is its body, whatever is inside.
            return self._copies(loop, count) if single and count is not None else loop
        self.steps *= count
        self.unrolled_depth += 1
        if options.explicit_unroll or single:
            return self._copies(loop, count)
        return loop if asked else loop.replace(kind=ForKind.UNROLLED)

    def _copies(self, loop: For, count: int) -> Stmt:
        if count > 1 and not self.repeated_definitions:
            self.repeated_definitions = any(found.defining_fields for found in post_order(loop.body))
        known = independent_nodes(loop.body, loop.loop_var) if count > 1 else {}
        copies = [_iteration(loop, number, known) for number in range(count)]
        return stmt_seq(*copies) if copies else NO_OP


def _iteration(loop: For, number: int, known: Mapping[int, tuple[Any, Any]]) -> Stmt:
    """The body of one iteration; ``known`` is what all iterations share."""
    value = operators.add(loop.min, operators.const(number, loop.loop_var.dtype))
    mapping: dict[Var, Any] = {loop.loop_var: value}
    return FoldingSubstitute(mapping, known).visit(loop.body)  # type: ignore[no-any-return]


def unroll_loops(stmt: Stmt, options: UnrollLoopConfig | None = None) -> Stmt:
    """The statement with loops unrolled; see the module's text."""
    unroller = _Unroller(options or UnrollLoopConfig())
    made: Stmt = unroller.visit(stmt)
    return with_one_definition(made) if unroller.repeated_definitions else made


@dataclass(frozen=True)
class UnrollLoop(PrimFuncPass):
    """Unrolls the loops that ask for it, and those that ``tir.UnrollLoop`` in the context allows.

    An option that the pass sets itself wins over the context's.
    """

    auto_max_step: int | None = None
    auto_max_depth: int | None = None
    auto_max_extent: int | None = None
    explicit_unroll: bool | None = None
    unroll_local_access: bool | None = None

    name = "tir.UnrollLoop"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        options = with_own_options(context.get("tir.UnrollLoop"), self)
        return function.with_body(unroll_loops(function.body, options))
