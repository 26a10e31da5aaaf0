"""Stores of what was just loaded from global memory, as asynchronous copies."""

from __future__ import annotations

from typing import Final

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import (
    Broadcast,
    Call,
    FloatImm,
    IntImm,
    IterVar,
    Load,
    PrimExpr,
    Ramp,
    Range,
    Var,
    is_const,
)
from tilewright.ir.op import Op
from tilewright.support.dtype import DataType
from tilewright.tir import ptx
from tilewright.tir.op import if_then_else
from tilewright.tir.stmt import AttrStmt, Evaluate, For, Stmt, Store
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_SIZES: Final = (4, 8, 16)


class AsyncCopies(StmtMutator):
    """Replaces the stores of shared memory that can be asynchronous copies; ``made`` says whether there was one.

    Such a store moves 4, 8 or 16 bytes that begin at a multiple of their number in both places, straight from global
    memory, or zeros under a condition.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made = False
        self.analyzer = Analyzer()

    def visit_for(self, node: For) -> Stmt:
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent), allow_override=True)
        return node.map_children(self.visit)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            zero = operators.const(0, node.value.dtype)
            self.analyzer.bind(node.node.var, Range.from_min_extent(zero, node.value), allow_override=True)
        return node.map_children(self.visit)

    def visit_store(self, node: Store) -> Stmt:
        load, condition = _loaded(node.value)
        dtype = node.value.dtype
        size = dtype.itemsize * dtype.lanes
        if load is None or size not in _SIZES or not node.buffer_var.storage_scope.startswith("shared"):
            return node
        if load.buffer_var.storage_scope not in ("", "global"):
            return node
        if not is_const(node.predicate, 1) or not is_const(load.predicate, 1):
            return node
        target = self._start(node.index, dtype)
        source = self._start(load.index, dtype)
        if target is None or source is None:
            return node
        self.made = True
        valid: PrimExpr | None = None
        if condition is not None:
            valid = if_then_else(condition, operators.const(size), operators.const(0))
        return Evaluate(
            ptx.cp_async(
                _pointer(node.buffer_var, dtype, target, "w"),
                _pointer(load.buffer_var, dtype, source, "r"),
                size,
                valid,
            )
        )

    def _start(self, index: PrimExpr, dtype: DataType) -> PrimExpr | None:
        """Where the elements of an access begin, if they are neighbours and aligned as a whole."""
        if dtype.lanes == 1:
            return index if index.dtype.lanes == 1 else None
        if not isinstance(index, Ramp) or not is_const(index.stride, 1):
            return None
        known = self.analyzer.modular_set(index.base)
        return index.base if known.coeff % dtype.lanes == 0 and known.base % dtype.lanes == 0 else None


def _pointer(buffer: Var, dtype: DataType, start: PrimExpr, access: str) -> PrimExpr:
    annotation = operators.call("type_annotation", dtype.element, [])
    mask = 1 if access == "r" else 2
    return operators.call("tvm_access_ptr", "handle", [annotation, buffer, start, dtype.lanes, mask])


def _loaded(value: PrimExpr) -> tuple[Load | None, PrimExpr | None]:
    """The load that a value is, and the condition under which it is that and not zero."""
    if isinstance(value, Load):
        return value, None
    if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "tir.if_then_else":
        condition, yes, no = value.args
        if isinstance(condition, Broadcast):
            condition = condition.value
        if isinstance(yes, Load) and condition.dtype.lanes == 1 and _is_zero(no):
            return yes, condition
    return None, None


def _is_zero(value: PrimExpr) -> bool:
    inner = value.value if isinstance(value, Broadcast) else value
    return isinstance(inner, (IntImm, FloatImm)) and inner.value == 0
