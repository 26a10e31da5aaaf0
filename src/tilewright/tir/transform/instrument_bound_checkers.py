"""Checks every access to a buffer of known size against that size.

``StorageFlatten(create_bound_attribute=True)`` attaches sizes as ``buffer_bound``. An assertion that names the buffer,
the index and the size is inserted before each statement that reads or writes such a buffer. A read inside
``if_then_else`` or under a predicate is only checked where it happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import Call, Let, Load, PrimExpr, Ramp, Var, is_const
from tilewright.ir.functor import Visitor, post_order, substitute_expr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import message
from tilewright.tir.stmt import AssertStmt, AttrStmt, Evaluate, IfThenElse, LetStmt, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

_IF_THEN_ELSE = Op.register("tir.if_then_else")


@dataclass(frozen=True, slots=True)
class _Access:
    """One access: the buffer, its index, and the condition under which it happens."""

    buffer: Var
    index: PrimExpr
    condition: PrimExpr


class _Accesses(Visitor):
    """The reads in an expression."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition
        self.values: dict[Var, PrimExpr] = {}
        self.found: list[_Access] = []

    def add(self, buffer: Var, index: PrimExpr, predicate: PrimExpr) -> None:
        condition = self.condition
        if predicate.dtype.lanes == 1:
            condition = operators.logical_and(condition, predicate)
        elif not is_const(predicate, 1):
            # Which lanes are accessed is decided lane by lane.
            return
        self.found.append(
            _Access(buffer, substitute_expr(index, self.values), substitute_expr(condition, self.values))
        )

    def visit_load(self, node: Load) -> None:
        self.visit(node.index)
        self.add(node.buffer_var, node.index, node.predicate)

    def visit_call(self, node: Call) -> None:
        if getattr(node.op, "name", "") == "tir.address_of":
            return
        if node.op is not _IF_THEN_ELSE or node.args[0].dtype.lanes != 1:
            self.visit_default(node)
            return
        condition, outer = node.args[0], self.condition
        self.visit(condition)
        for branch, holds in ((node.args[1], condition), (node.args[2], operators.logical_not(condition))):
            self.condition = operators.logical_and(outer, holds)
            self.visit(branch)
        self.condition = outer

    def visit_let(self, node: Let) -> None:
        self.visit(node.value)
        self.values = {**self.values, node.var: substitute_expr(node.value, self.values)}
        self.visit(node.body)


class _Instrumenter(StmtMutator):
    def __init__(self, sizes: dict[Var, PrimExpr]) -> None:
        super().__init__()
        self.sizes = sizes

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "buffer_bound":
            return self.visit(node.body)  # type: ignore[no-any-return]
        return node.map_children(self.visit)

    def visit_store(self, node: Store) -> Stmt:
        accesses = self._reads(node.value, node.index)
        accesses.add(node.buffer_var, node.index, node.predicate)
        return self._checked(accesses, node)

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        return self._checked(self._reads(node.value), node)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        return self._checked(self._reads(node.value), node.map_children(self.visit))

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        return self._checked(self._reads(node.condition), node.map_children(self.visit))

    def visit_default(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        made = node.map_children(self.visit)
        return self._checked(
            self._reads(*[child for child in node.children() if not isinstance(child, Stmt)]), made
        )

    def _reads(self, *exprs: Any) -> _Accesses:
        accesses = _Accesses(operators.const(True, "bool"))
        for expr in exprs:
            accesses.visit(expr)
        return accesses

    def _checked(self, accesses: _Accesses, stmt: Stmt) -> Stmt:
        """The statement behind an assertion for each access of a buffer of known size."""
        checked: set[tuple[int, int]] = set()
        for access in reversed(accesses.found):
            size = self.sizes.get(access.buffer)
            if size is None or (id(access.buffer), id(access.index)) in checked:
                continue
            checked.add((id(access.buffer), id(access.index)))
            for index in _ends(access.index):
                stmt = _assertion(access, index, size, stmt)
        return stmt


def _ends(index: PrimExpr) -> list[PrimExpr]:
    """The scalar indices whose being in range puts all of an index in range; none for a vector of another form."""
    if index.dtype.lanes == 1:
        return [index]
    if isinstance(index, Ramp):
        last = operators.add(index.base, operators.multiply(index.stride, index.lanes - 1))
        return [last, index.base]
    return []


def _assertion(access: _Access, index: PrimExpr, size: PrimExpr, body: Stmt) -> Stmt:
    wide, limit = operators.cast("int64", index), operators.cast("int64", size)
    inside = operators.logical_and(operators.greater_equal(wide, 0), operators.less(wide, limit))
    holds = operators.logical_or(operators.logical_not(access.condition), inside)
    text = f"access out of bounds: buffer {access.buffer.name} has {{1}} elements, index {{0}} was accessed"
    return AssertStmt(holds, message("IndexError", text, [wide, limit]), body)


def instrument_bound_checkers(stmt: Stmt) -> Stmt:
    """The statement with its accesses checked; see the module's text."""
    sizes = {
        found.node: found.value
        for found in post_order(stmt)
        if isinstance(found, AttrStmt) and found.attr_key == "buffer_bound"
    }
    return _Instrumenter(sizes).visit(stmt) if sizes else stmt


@dataclass(frozen=True)
class InstrumentBoundCheckers(PrimFuncPass):
    """Checks every access of a buffer of known size."""

    name = "tir.InstrumentBoundCheckers"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(instrument_bound_checkers(function.body))
