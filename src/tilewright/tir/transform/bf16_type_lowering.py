"""Represents bfloat16 values as their sixteen bits.

Loads, stores and allocations use uint16. Widening shifts the bits into the upper half of a float32; rounding is to
nearest, ties to even, and keeps NaN a NaN. Run after ``BF16Promote``, when nothing computes in bfloat16 any more.
Argument buffers keep their type, so that a function still takes bfloat16 arrays.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import BufferLoad, Call, Cast, FloatImm, IntImm, Let, Load, PrimExpr, Select, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass

_FLOAT32, _UINT16, _UINT32 = DataType("float32"), DataType("uint16"), DataType("uint32")
_QUIET_NAN = 0x7FC0


def bfloat16_bits(value: float) -> int:
    """The bits of the bfloat16 nearest to a number, ties to even."""
    if value != value:
        return _QUIET_NAN
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        return 0x7F80 if value > 0 else 0xFF80
    return int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _to_float32(bits: PrimExpr) -> PrimExpr:
    """The float32 with these sixteen bits on top."""
    wide = operators.cast(_UINT32.with_lanes(bits.dtype.lanes), bits)
    shifted = operators.left_shift(wide, operators.const(16, wide.dtype))
    return operators.call("reinterpret", _FLOAT32.with_lanes(bits.dtype.lanes), [shifted])


def _to_bits(value: PrimExpr) -> PrimExpr:
    """The bits of a float32 rounded to bfloat16."""
    lanes = value.dtype.lanes
    kind = _UINT32.with_lanes(lanes)
    bits = operators.call("reinterpret", kind, [value])
    sixteen = operators.const(16, kind)
    odd = operators.bitwise_and(operators.right_shift(bits, sixteen), operators.const(1, kind))
    rounded = operators.add(operators.add(odd, operators.const(0x7FFF, kind)), bits)
    half = operators.cast(_UINT16.with_lanes(lanes), operators.right_shift(rounded, sixteen))
    return Select(operators.not_equal(value, value), operators.const(_QUIET_NAN, half.dtype), half)


class _Lowerer(Mutator):
    """``memoize`` holds: what an expression becomes depends on nothing but itself."""

    memoize = True

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[Var, Var] = {}

    def visit_var(self, node: Var) -> Var:
        return self.variables.get(node, node)

    def visit_cast(self, node: Cast) -> PrimExpr:
        source, target = node.value.dtype, node.dtype
        value = self.visit(node.value)
        if source.is_bfloat16 and target.is_bfloat16:
            return value  # type: ignore[no-any-return]
        if source.is_bfloat16:
            return operators.cast(target, _to_float32(value))
        if target.is_bfloat16:
            return _to_bits(operators.cast(_FLOAT32.with_lanes(target.lanes), value))
        return node if value is node.value else Cast(target, value, node.span)

    def visit_float_imm(self, node: FloatImm) -> PrimExpr:
        return IntImm(_UINT16, bfloat16_bits(node.value), node.span) if node.dtype.is_bfloat16 else node

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        return made.replace(dtype=_UINT16.with_lanes(made.dtype.lanes)) if made.dtype.is_bfloat16 else made

    def visit_buffer_load(self, node: BufferLoad) -> PrimExpr:
        return node.map_children(self.visit)

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        name = getattr(made.op, "name", "")
        if made.dtype.is_bfloat16 and name in ("tir.if_then_else", "tir.type_annotation"):
            return made.replace(dtype=_UINT16.with_lanes(made.dtype.lanes))
        return made

    def visit_allocate(self, node: Allocate) -> Stmt:
        if not node.dtype.is_bfloat16:
            return node.map_children(self.visit)
        pointer = PointerType(PrimType(_UINT16), node.buffer_var.storage_scope)
        variable = self.variables[node.buffer_var] = Var(node.buffer_var.name, pointer)
        made: Allocate = node.map_children(self.visit)
        return made.replace(buffer_var=variable, dtype=_UINT16.with_lanes(node.dtype.lanes))

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        variable = self._bound(node.var)
        made: LetStmt = node.map_children(self.visit)
        return made if variable is node.var else made.replace(var=variable)

    def visit_let(self, node: Let) -> PrimExpr:
        variable = self._bound(node.var)
        value, body = self.visit(node.value), self.visit(node.body)
        if value is node.value and body is node.body:
            return node
        return Let(variable, value, body, node.span)

    def _bound(self, variable: Var) -> Var:
        if not variable.dtype.is_bfloat16:
            return variable
        self.variables[variable] = Var(variable.name, _UINT16.with_lanes(variable.dtype.lanes))
        return self.variables[variable]

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made: AttrStmt = node.map_children(self.visit)
        renamed = self.variables.get(node.node) if isinstance(node.node, Var) else None
        return made if renamed is None else made.replace(node=renamed)


def bf16_type_lowering(stmt: Stmt) -> Stmt:
    """The statement with bfloat16 values held as bits."""
    return _Lowerer().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BF16TypeLowering(PrimFuncPass):
    """Holds bfloat16 values as their sixteen bits."""

    name = "tir.BF16TypeLowering"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(bf16_type_lowering(function.body))
