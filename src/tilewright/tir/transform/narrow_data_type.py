"""Computes indices in fewer bits where their values allow it.

A loop variable of more than ``target_bits`` bits is narrowed if its range fits, and if every index, bound and condition
that uses it fits with all of its parts. Where a value (not an index) uses the variable, it is widened again. The values
of the function's arguments are unknown, so indices that use them keep their width. A thread index that is narrower than
the number of its threads gets the type of that number if an index that uses it does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer, ConstIntBound
from tilewright.ir import operators
from tilewright.ir.expr import CmpExpr, IntImm, IterVar, Load, PrimExpr, Range, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import DataType
from tilewright.support.errors import LoweringError
from tilewright.tir.analysis.statement_visitor import StatementVisitor
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import Substitute
from tilewright.tir.stmt import Allocate, AttrStmt, For, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import bind_range, thread_axis


class _Survey(StatementVisitor):
    """Finds the variables that can be narrow: defined by loops and threads, and used in narrow indices only."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.limit = (1 << (bits - 1)) - 1
        self.analyzer = Analyzer()
        self.narrow: dict[Var, DataType] = {}
        self.wide: set[Var] = set()
        self.extent_types: dict[Var, DataType] = {}
        self.widened: dict[Var, DataType] = {}
        self.has_wide_indices = False

    def fits(self, expr: PrimExpr) -> bool:
        """True if the expression and all its parts stay within the narrow type."""
        return all(self._part_fits(part) for part in post_order(expr) if isinstance(part, PrimExpr))

    def _part_fits(self, part: PrimExpr) -> bool:
        if not part.dtype.is_int or part.dtype.bits <= self.bits:
            return True
        if isinstance(part, Var):
            return part in self.narrow
        bound: ConstIntBound = self.analyzer.const_int_bound(part)
        return -self.limit - 1 <= bound.min_value and bound.max_value <= self.limit

    def _define(self, variable: Var, start: PrimExpr, extent: PrimExpr) -> None:
        bind_range(self.analyzer, variable, start, extent)
        if variable.dtype.is_int and variable.dtype.bits > self.bits and variable not in self.wide:
            bound = self.analyzer.const_int_bound(variable)
            last = self.analyzer.const_int_bound(operators.add(start, extent))
            if bound.min_value >= -self.limit - 1 and max(bound.max_value, last.max_value) <= self.limit:
                self.narrow[variable] = variable.dtype.with_bits(self.bits)
            else:
                self.narrow.pop(variable, None)
                self.wide.add(variable)

    def _index(self, *exprs: PrimExpr) -> None:
        """An index: if it does not fit, the variables in it stay wide."""
        self.has_wide_indices = self.has_wide_indices or any(expr.dtype.bits > self.bits for expr in exprs)
        if all(self.fits(expr) for expr in exprs):
            return
        for found in (found for expr in exprs for found in post_order(expr)):
            if isinstance(found, Var) and found in self.narrow:
                del self.narrow[found]
                self.wide.add(found)
            if isinstance(found, Var) and found in self.extent_types:
                self.widened[found] = self.extent_types[found]

    def visit_for(self, node: For) -> None:
        self._index(node.min, node.extent)
        self._define(node.loop_var, node.min, node.extent)
        self.visit(node.body)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        axis = thread_axis(node)
        if axis is not None:
            self._index(node.value)
            if node.value.dtype.bits > max(axis.var.dtype.bits, self.bits):
                self.extent_types[axis.var] = node.value.dtype
            self._define(
                axis.var, operators.const(0, axis.var.dtype), operators.cast(axis.var.dtype, node.value)
            )
            self.visit(node.body)
        else:
            self.visit_default(node)

    def visit_load(self, node: Load) -> None:
        self._index(node.index)
        self.visit_default(node)

    def visit_store(self, node: Store) -> None:
        self._index(node.index)
        self.visit_default(node)

    def visit_default(self, node: Any) -> None:
        if isinstance(node, CmpExpr) and node.a.dtype.is_int:
            self._index(node.a, node.b)
        for child in node.children():
            self.visit(child)


class _Narrower(Mutator):
    """An index whose parts all fit, in the narrow type."""

    memoize = True

    def __init__(self, variables: Mapping[Var, PrimExpr], bits: int) -> None:
        super().__init__()
        self.variables = variables
        self.bits = bits

    def visit_var(self, node: Var) -> PrimExpr:
        return self.variables.get(node, node)

    def visit_int_imm(self, node: IntImm) -> PrimExpr:
        if node.dtype.is_int and node.dtype.bits > self.bits:
            return IntImm(node.dtype.with_bits(self.bits), node.value, node.span)
        return node

    def visit_cast(self, node: Any) -> PrimExpr:
        value = self.visit(node.value)
        dtype = node.dtype
        if dtype.is_int and dtype.bits > self.bits:
            dtype = dtype.with_bits(self.bits)
        return node if value is node.value and dtype is node.dtype else operators.cast(dtype, value)


class _Rewriter(Substitute):
    """Narrow variables in the definitions; narrow indices where they fit, widened variables elsewhere."""

    def __init__(self, survey: _Survey) -> None:
        self.survey = survey
        self.variables = {
            variable: variable.replace(dtype=dtype, type_annotation=Var("", dtype).type_annotation)
            for variable, dtype in (survey.narrow | survey.widened).items()
        }
        as_before: dict[Var, PrimExpr] = {
            variable: operators.cast(variable.dtype, other) for variable, other in self.variables.items()
        }
        super().__init__(as_before)
        narrow = {variable: self.variables[variable] for variable in survey.narrow}
        self.narrower = _Narrower(as_before | narrow, survey.bits)

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An index in the narrow type where it fits."""
        made: PrimExpr = self.narrower.visit(expr) if self.survey.fits(expr) else self.visit(expr)
        return made

    def visit_for(self, node: For) -> Stmt:
        variable = self.variables.get(node.loop_var, node.loop_var)
        start, extent, body = self.index(node.min), self.index(node.extent), self.visit(node.body)
        if variable is node.loop_var and start is node.min and extent is node.extent and body is node.body:
            return node
        return For(variable, start, extent, node.kind, body, node.thread_binding, node.annotations, node.span)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        axis = thread_axis(node)
        variable = None if axis is None else self.variables.get(axis.var)
        if axis is None or variable is None:
            return node.map_children(self.visit)
        domain = axis.dom
        if domain is not None:
            domain = Range.from_min_extent(self.index(domain.min), self.index(domain.extent))
        narrow = IterVar(domain, variable, axis.iter_type, axis.thread_tag, axis.span)
        return AttrStmt(narrow, node.attr_key, self.index(node.value), self.visit(node.body), node.span)

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(lambda child: child if child is node.index else self.visit(child))
        index = self.index(node.index)
        return made if index is node.index else made.replace(index=index)

    def visit_store(self, node: Store) -> Stmt:
        made: Store = node.map_children(lambda child: child if child is node.index else self.visit(child))
        index = self.index(node.index)
        return made if index is node.index else made.replace(index=index)

    def visit_allocate(self, node: Allocate) -> Stmt:
        return node.map_children(self.visit)

    def visit_cast(self, node: Any) -> PrimExpr:
        wide = self.variables.get(node.value) if node.value in self.survey.widened else None
        if wide is not None and wide.dtype is node.dtype:
            return wide
        return node.map_children(self.visit)  # type: ignore[no-any-return]

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, CmpExpr) and node.a.dtype.is_int:
            if self.survey.fits(node.a) and self.survey.fits(node.b):
                return node.rebuild(a=self.narrower.visit(node.a), b=self.narrower.visit(node.b))
        return node.map_children(self.visit)


def narrow_data_type(stmt: Stmt, target_bits: int) -> Stmt:
    """The statement with narrow indices; see the module's text."""
    if target_bits not in (16, 32, 64):
        raise LoweringError(f"indices of {target_bits} bits are not supported; use 32 or 64")
    survey = _Survey(target_bits)
    survey.visit(stmt)
    # A variable that had to stay wide may have been part of an index that counted as narrow before.
    while survey.narrow:
        before = len(survey.narrow)
        survey.visit(stmt)
        if len(survey.narrow) == before:
            break
    if not survey.narrow and not survey.has_wide_indices:
        return stmt
    return _Rewriter(survey).visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class NarrowDataType(PrimFuncPass):
    """Computes indices in ``target_bits`` bits where their values allow it."""

    target_bits: int = 32

    name = "tir.NarrowDataType"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(narrow_data_type(function.body, self.target_bits))
