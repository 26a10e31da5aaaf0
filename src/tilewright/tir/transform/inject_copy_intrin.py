"""Replaces copy loops by the result of a user's function.

The attribute ``pragma_<key>`` marks a nest of loops around one store of one load, whose value may be padded:
``if_then_else(inside, load, padding)``. The function gets both sides as strided buffers, the number of padding elements
before and after in each dimension, and the padding value; it returns the replacement statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.arith import Analyzer, detect_clip_bound, detect_linear_equation, neg_inf, pos_inf
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import Call, Cast, Load, PrimExpr, Select, Var
from tilewright.ir.functor import substitute_expr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import AttrStmt, For, LetStmt, Stmt, Store
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

CopyIntrinsic = Callable[[Buffer, Buffer, list[PrimExpr], list[PrimExpr], PrimExpr | None], Stmt]


@dataclass(slots=True)
class _Copy:
    """The parts of a copy: loops, target, source, and where the source is read at all."""

    loops: list[For]
    store: Store
    load: Load
    condition: PrimExpr | None
    padding: PrimExpr | None


def _parse(stmt: Stmt) -> _Copy | None:
    loops: list[For] = []
    while isinstance(stmt, (For, LetStmt)):
        if isinstance(stmt, For):
            loops.append(stmt)
            stmt = stmt.body
        else:
            stmt = substitute(stmt.body, {stmt.var: stmt.value})
    if not isinstance(stmt, Store):
        return None
    value = stmt.value
    condition: PrimExpr | None = None
    padding: PrimExpr | None = None
    if isinstance(value, Select):
        condition, padding = value.condition, value.false_value
        value = value.true_value
    elif isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else":
        condition, value, padding = value.args
    if isinstance(value, Cast):
        value = value.value
    return _Copy(loops, stmt, value, condition, padding) if isinstance(value, Load) else None


class _Injector(StmtMutator):
    def __init__(self, key: str, intrinsic: CopyIntrinsic) -> None:
        super().__init__()
        self.key = f"pragma_{key}"
        self.intrinsic = intrinsic
        self.analyzer = Analyzer()

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != self.key:
            return node.map_children(self.visit)
        copy = _parse(node.body)
        made = None if copy is None else self._call(copy)
        if made is None:
            raise LoweringError(
                f"the statement under {self.key} is not a copy of one buffer to another: {node.body}"
            )
        return made

    def _call(self, copy: _Copy) -> Stmt | None:
        variables = [loop.loop_var for loop in copy.loops]
        starts: dict[Var, PrimExpr] = {
            loop.loop_var: operators.add(loop.loop_var, loop.min) for loop in copy.loops
        }
        target = detect_linear_equation(substitute_expr(copy.store.index, starts), variables)
        source = detect_linear_equation(substitute_expr(copy.load.index, starts), variables)
        if not target or not source:
            return None
        shape: list[PrimExpr] = [loop.extent for loop in copy.loops]
        before: list[PrimExpr] = []
        after: list[PrimExpr] = []
        source_shape, source_offset = list(shape), source[-1]
        if copy.condition is not None:
            bounds = detect_clip_bound(substitute_expr(copy.condition, starts), variables)
            if not bounds:
                return None
            for position, extent in enumerate(shape):
                low, high = self._padding(bounds, position, extent)
                before.append(low)
                after.append(high)
                source_offset = operators.add(source_offset, operators.multiply(low, source[position]))
                inner = operators.subtract(operators.subtract(extent, low), high)
                source_shape[position] = self.analyzer.simplify(inner)
        one = operators.const(1, copy.store.index.dtype)
        dimensions = shape or [one]
        made_target = self._buffer(
            copy.store.buffer_var, copy.store.value.dtype, dimensions, target, target[-1]
        )
        made_source = self._buffer(
            copy.load.buffer_var,
            copy.load.dtype,
            source_shape or [one],
            source,
            self.analyzer.simplify(source_offset),
        )
        result = self.intrinsic(made_source, made_target, before, after, copy.padding)
        if not isinstance(result, Stmt):
            raise LoweringError(
                f"the function for {self.key} gave {type(result).__name__} instead of a statement"
            )
        return result

    def _padding(
        self, bounds: Sequence[PrimExpr], position: int, extent: PrimExpr
    ) -> tuple[PrimExpr, PrimExpr]:
        """How many elements of a dimension are padding before and after."""
        zero = operators.const(0, extent.dtype)
        low, high = bounds[2 * position], bounds[2 * position + 1]
        before = zero if low is neg_inf() else self.analyzer.simplify(operators.maximum(low, zero))
        if high is pos_inf():
            return before, zero
        rest = operators.subtract(operators.subtract(extent, high), 1)
        return before, self.analyzer.simplify(operators.maximum(rest, zero))

    def _buffer(
        self, data: Var, dtype: str, shape: list[PrimExpr], factors: Sequence[PrimExpr], offset: PrimExpr
    ) -> Buffer:
        strides = list(factors[:-1]) or [operators.const(1, offset.dtype)]
        return decl_buffer(shape, dtype, data.name, data=data, strides=strides, elem_offset=offset)


@dataclass(frozen=True)
class InjectCopyIntrin(PrimFuncPass):
    """Replaces the copies under ``pragma_<pragma_key>`` by what ``fintrin`` gives for them."""

    pragma_key: str
    fintrin: CopyIntrinsic

    name = "tir.InjectCopyIntrin"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Injector(self.pragma_key, self.fintrin).visit(function.body))
