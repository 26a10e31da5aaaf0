"""Turns functions into plain C functions, for microcontrollers that call them directly.

Before: ``f(A: handle, n: int32)`` with a buffer map. After: ``f(A.data, n) -> int32`` without checks: the caller passes
pointers to memory of the right shape, and everything symbolic as a parameter. The function returns 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import StringImm, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PrimType
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.arg_binder import CPU, required_alignment
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, Evaluate, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.make_packed_api import ends_with_return, return_zero
from tilewright.tir.undefined import undefined_vars


def make_unpacked_api(function: PrimFunc) -> PrimFunc:
    """The plain C form of one function."""
    symbol = function.attrs.get("global_symbol")
    if symbol is None or function.attrs.get("calling_conv", CallingConv.DEFAULT) != CallingConv.DEFAULT:
        return function
    params: list[Var] = []
    body = function.body
    target = function.attrs.get("target")
    device_type = target.kind.device_type if isinstance(target, Target) else CPU
    for param in function.params:
        buffer = function.buffer_map.get(param)
        params.append(param if buffer is None else buffer.data)
        if buffer is not None:
            body = AttrStmt(buffer.data, "storage_alignment", required_alignment(buffer, device_type), body)
    body = AttrStmt(StringImm("default"), "device_type", device_type, body)
    body = AttrStmt(StringImm("default"), "device_id", 0, body)
    if not ends_with_return(function.body):
        body = stmt_seq(body, Evaluate(return_zero()))
    missing = undefined_vars(body, params)
    if missing:
        names = ", ".join(variable.name for variable in missing)
        raise LoweringError(
            f"{symbol} uses {names}: a function without packed arguments takes each as a parameter"
        )
    return function.replace(params=tuple(params), body=body, ret_type=PrimType("int32"), buffer_map={})


@dataclass(frozen=True)
class MakeUnpackedAPI(PrimFuncPass):
    """Give every function with a ``global_symbol`` the plain C form."""

    name = "tir.MakeUnpackedAPI"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return make_unpacked_api(function)
