"""Checks whether a statement may write a buffer over one that it reads.

It may if every element is computed from the element of the other buffer at the same index, nothing else of the two
buffers is read, and no two iterations of the statement's loops access the same index.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.expr import IntImm, Load, PrimExpr, Ramp, Var
from tilewright.ir.functor import Visitor, post_order
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.analysis.index_terms import index_terms
from tilewright.tir.stmt import Evaluate, For, Stmt, Store, While


class _Refused(Exception):
    """The statement does something that rules out working in place."""


class _Check(Visitor):
    def __init__(self, target: Var, source: Var) -> None:
        super().__init__()
        self.target = target
        self.source = source
        self.loops: list[For] = []
        self.stores = 0

    def visit_for(self, node: For) -> None:
        self._expect_neither(node.min, node.extent)
        self.loops.append(node)
        self.visit(node.body)
        self.loops.pop()

    def visit_while(self, node: While) -> None:
        raise _Refused

    def visit_evaluate(self, node: Evaluate) -> None:
        self._expect_neither(node.value)

    def visit_store(self, node: Store) -> None:
        if node.buffer_var is not self.target:
            self._expect_neither(node)
            return
        self.stores += 1
        if self.stores > 1 or not _is_injective(node.index, self.loops):
            raise _Refused
        self._expect_neither(node.index, node.predicate)
        for found in post_order(node.value):
            if isinstance(found, Load) and found.buffer_var is self.source:
                matches = found.dtype is node.value.dtype and expr_deep_equal(found.index, node.index)
                if not matches:
                    raise _Refused
            elif isinstance(found, Load) and found.buffer_var is self.target:
                raise _Refused

    def visit_default(self, node: Any) -> None:
        for child in node.children():
            if isinstance(child, Stmt):
                self.visit(child)
            else:
                self._expect_neither(child)

    def _expect_neither(self, *nodes: Any) -> None:
        for node in nodes:
            if any(found is self.target or found is self.source for found in post_order(node)):
                raise _Refused


def can_run_in_place(stmt: Stmt, target: Var, source: Var) -> bool:
    """True if ``target`` may have the memory of ``source``; see the module's text."""
    try:
        _Check(target, source).visit(stmt)
    except _Refused:
        return False
    return True


def _is_injective(index: PrimExpr, loops: list[For]) -> bool:
    """True if different iterations of the loops give different indices: strides nest like digits of a number."""
    lanes = index.dtype.lanes
    if isinstance(index, Ramp):
        if not (isinstance(index.stride, IntImm) and index.stride.value == 1):
            return False
        index = index.base
    variables = {loop.loop_var for loop in loops}
    strides, rest = index_terms(index, variables)
    if any(found in variables for part in rest for found in post_order(part) if isinstance(found, Var)):
        return False
    reach = lanes
    by_stride = sorted(loops, key=lambda loop: strides.get(loop.loop_var, 0))
    for position, loop in enumerate(by_stride):
        stride = strides.get(loop.loop_var, 0)
        if stride < reach:
            return False
        if isinstance(loop.extent, IntImm):
            reach = stride * loop.extent.value
        elif position != len(by_stride) - 1:
            return False
    return True
