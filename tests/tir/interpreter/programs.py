"""Pieces of programs that the tests of the interpreter run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    Call,
    FloatImm,
    IntImm,
    IterVar,
    PrimExpr,
    Ramp,
    StringImm,
    Var,
)
from tilewright.ir.type import PointerType, PrimType
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    AttrStmt,
    BufferStore,
    Evaluate,
)


def pointer(name: str, dtype: str = "float32", scope: str = "") -> Var:
    """A pointer variable."""
    return Var(name, PointerType(PrimType(dtype), scope))


def evaluate(expr: PrimExpr) -> Any:
    """The value of a closed expression, through memory of its own type."""
    lanes = expr.dtype.lanes
    out = decl_buffer((lanes,), expr.dtype.element, "out")
    index: Any = IntImm("int32", 0) if lanes == 1 else Ramp(0, 1, lanes)
    result = np.zeros(lanes, "uint16" if expr.dtype.is_bfloat16 else str(expr.dtype.element))
    interpret(PrimFunc([out], BufferStore(out, expr, [index])), result)
    return result if lanes > 1 else result[0]


def intrinsic(name: str, dtype: str, *args: Any) -> Call:
    """A call of ``tir.<name>``."""
    return operators.call(name, dtype, list(args))


def float32(value: float) -> PrimExpr:
    return FloatImm("float32", value)


def int32(value: int) -> PrimExpr:
    return IntImm("int32", value)


def threads(tag: str, extent: int, body: Any) -> AttrStmt:
    """A thread index bound around a body made from its variable."""
    axis = IterVar(None, tag.replace(".", "_"), IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", int32(extent), body(axis.var))


def barrier() -> Evaluate:
    return Evaluate(intrinsic("tvm_storage_sync", "int32", StringImm("shared")))
