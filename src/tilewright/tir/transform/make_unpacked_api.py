"""Turns functions into plain C functions, for microcontrollers that call them directly.

Before: ``f(A: handle, n: int32)`` with a buffer map. After: ``f(arg0, arg1) -> int32`` without checks: the caller
passes pointers to memory of the right shape, and everything symbolic as a parameter; the names that the body uses are
bound to them. The function returns 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.expr import EQ, StringImm, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PrimType
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.arg_binder import CPU, required_alignment
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AssertStmt, AttrStmt, Evaluate, LetStmt, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.make_packed_api import ends_with_return, return_zero
from tilewright.tir.undefined import undefined_vars


def make_unpacked_api(function: PrimFunc) -> PrimFunc:
    """The plain C form of one function."""
    if function.attrs.get("calling_conv", CallingConv.DEFAULT) != CallingConv.DEFAULT:
        return function
    symbol = function.attrs.get("global_symbol")
    if symbol is None:
        raise LoweringError(
            "Expect PrimFunc to have the global_symbol attribute: it is the name of the C function"
        )
    target = function.attrs.get("target")
    if target is None:
        raise LoweringError(f"Require the target attribute: {symbol} has none; BindTarget sets it")
    device_type = target.kind.device_type if isinstance(target, Target) else CPU
    params = tuple(
        Var(f"arg{number}", _bound(function, param).type_annotation)
        for number, param in enumerate(function.params)
    )
    missing = undefined_vars(function.body, [_bound(function, param) for param in function.params])
    if missing:
        names = ", ".join(variable.name for variable in missing)
        raise LoweringError(
            f"{symbol} uses {names}: a function without packed arguments takes each as a parameter"
        )
    body = function.body
    if not ends_with_return(body):
        body = stmt_seq(body, Evaluate(return_zero()))
    body = _bind(function, params, device_type, body)
    if function.buffer_map:
        body = AttrStmt(StringImm("default"), "device_type", device_type, body)
        body = AttrStmt(StringImm("default"), "device_id", 0, body)
    return function.replace(params=params, body=body, ret_type=PrimType("int32"), buffer_map={})


def _bound(function: PrimFunc, param: Var) -> Var:
    """What the body knows a parameter as: itself, or the pointer to its buffer's memory."""
    buffer = function.buffer_map.get(param)
    return param if buffer is None else buffer.data


def _bind(function: PrimFunc, params: Sequence[Var], device_type: int, body: Stmt) -> Stmt:
    """The body with its names for the arguments. A name that two arguments give is the first one's; an assertion
    compares them."""
    plain = [param not in function.buffer_map for param in function.params]
    known: dict[Var, Var] = {}
    repeated: list[tuple[Var, Var]] = []
    # Plain parameters come first: a pointer that is passed as one may be a buffer's, too.
    for number in sorted(range(len(params)), key=lambda number: not plain[number]):
        name = _bound(function, function.params[number])
        if name in known:
            repeated.append((name, params[number]))
        else:
            known[name] = params[number]
    for param in function.params:
        buffer = function.buffer_map.get(param)
        if buffer is not None:
            body = AttrStmt(buffer.data, "storage_alignment", required_alignment(buffer, device_type), body)
    for name, argument in reversed(repeated):
        body = AssertStmt(
            EQ(name, argument),
            StringImm(f"{name.name} and {argument.name} are the same parameter, and their values differ"),
            body,
        )
    for name, argument in reversed(known.items()):
        body = LetStmt(name, argument, body)
    return body


@dataclass(frozen=True)
class MakeUnpackedAPI(PrimFuncPass):
    """Give every function the plain C form."""

    name = "tir.MakeUnpackedAPI"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return make_unpacked_api(function)
