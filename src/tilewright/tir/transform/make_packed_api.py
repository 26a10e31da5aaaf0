"""Turns functions into the form in which they are exported.

Before: ``f(A: handle, n: int32)`` with a buffer map. After: ``f(self_handle, args, num_args, result) -> int32`` with
``calling_conv`` packed; the checks and bindings of ``ArgBinder`` come before the body, ``tir.ret(x)`` writes ``x`` to
``result``, and the function returns 0. Functions without a ``global_symbol`` are internal and stay unchanged.

Invariant from here on: the buffer map is empty, and every variable has its value from a statement or a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.attrs import DictAttrs
from tilewright.ir.expr import Call, PrimExpr, StringImm, Var
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PrimType
from tilewright.support.errors import LoweringError
from tilewright.target.target import Target
from tilewright.tir.arg_binder import CPU, ArgBinder
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import StructField, TypeIndex, struct_set
from tilewright.tir.stmt import AttrStmt, Evaluate, SeqStmt, Stmt, stmt_list, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator
from tilewright.tir.undefined import undefined_vars
from tilewright.tir.written import written_pointers


class _ReturnValues(StmtMutator):
    """``ret(value)`` becomes a write of the result and a return of zero."""

    def __init__(self, result: Var) -> None:
        super().__init__()
        self.result = result

    def visit_evaluate(self, node: Evaluate) -> Stmt:
        call = node.value
        if not (isinstance(call, Call) and call.op.name == "tir.ret"):
            return node
        if len(call.args) != 1:
            raise LoweringError(f"a function returns one value, not {len(call.args)}")
        return _return_value(self.result, call.args[0])


def _return_value(result: Var, value: PrimExpr) -> Stmt:
    if value.dtype.lanes != 1:
        raise LoweringError(f"a function returns a number or a pointer, not a vector ({value.dtype})")
    if value.dtype.is_float:
        index, wide = TypeIndex.FLOAT, operators.cast("float64", value)
    elif value.dtype.is_handle:
        index, wide = TypeIndex.OPAQUE_POINTER, value
    else:
        index = TypeIndex.BOOL if value.dtype.is_bool else TypeIndex.INT
        wide = operators.cast("int64", value)
    return SeqStmt(
        [
            Evaluate(struct_set(result, 0, StructField.ANY_TYPE_INDEX, int(index))),
            Evaluate(struct_set(result, 0, StructField.ANY_VALUE, wide)),
            Evaluate(return_zero()),
        ]
    )


def return_zero() -> PrimExpr:
    """The end of a function that succeeded."""
    return operators.call("ret", "int32", [operators.const(0, "int32")])


def ends_with_return(body: Stmt) -> bool:
    """True if the last statement returns."""
    last = stmt_list(body)[-1]
    return isinstance(last, Evaluate) and isinstance(last.value, Call) and last.value.op.name == "tir.ret"


def split_params(function: PrimFunc, num_unpacked: int) -> tuple[Sequence[Var], Sequence[Var]]:
    """The parameters that come packed, and the last ones that come as they are."""
    if not 0 <= num_unpacked <= len(function.params):
        raise LoweringError(
            f"num_unpacked_params is {num_unpacked}, the function has {len(function.params)} parameters"
        )
    cut = len(function.params) - num_unpacked
    return function.params[:cut], function.params[cut:]


def make_packed_api(
    function: PrimFunc, num_unpacked_params: int = 0, runtime_checks: bool = False
) -> PrimFunc:
    """The exported form of one function; ``runtime_checks`` has the runtime check tensors where it can."""
    symbol = function.attrs.get("global_symbol")
    if symbol is None or function.attrs.get("calling_conv", CallingConv.DEFAULT) == CallingConv.C_PACKED_FUNC:
        return function
    name = str(symbol.value if isinstance(symbol, StringImm) else symbol)
    target = function.attrs.get("target")
    if target is None:
        raise LoweringError(f"{name} has no target; run BindTarget before MakePackedAPI")
    device_type = target.kind.device_type if isinstance(target, Target) else CPU
    packed, unpacked = split_params(function, num_unpacked_params)
    self_handle, args = Var("self_handle", "handle"), Var("args", "handle")
    num_args = Var("num_args", "int32")
    result = Var("result", "handle")
    device_id = Var("device_id", "int32")
    binder = ArgBinder(name, written_pointers(function.body), runtime_checks)
    binder.expect(args, num_args, len(packed))
    for index, param in enumerate(packed):
        buffer = function.buffer_map.get(param)
        if buffer is None:
            binder.bind_scalar(param, args, index, device_type)
        else:
            binder.bind_buffer(param, buffer, args, index, device_type, device_id)
    body = _ReturnValues(result).visit(function.body)
    body = AttrStmt(StringImm("default"), "compute_scope", StringImm(f"{name}_compute_"), body)
    selects = isinstance(target, Target) and target.kind.own_memory
    body = _with_device(body, device_type, device_id if device_id in binder.values else None, selects)
    if not ends_with_return(function.body):
        body = stmt_seq(body, Evaluate(return_zero()))
    params = (self_handle, args, num_args, result, *unpacked)
    body = binder.wrap(body)
    _require_defined(name, body, params)
    attrs = {**dict(function.attrs.items()), "calling_conv": CallingConv.C_PACKED_FUNC}
    return PrimFunc(params, body, PrimType("int32"), {}, DictAttrs(attrs), function.span)


def _with_device(body: Stmt, device_type: int, device_id: Var | None, selects: bool) -> Stmt:
    """The body with the device that its memory and kernels are on; kernels are launched on the thread's device."""
    if device_id is None:
        return body
    if selects:
        select = operators.call("tvm_call_packed", "int32", ["__tvm_set_device", device_type, device_id])
        body = stmt_seq(Evaluate(select), body)
    body = AttrStmt(StringImm("default"), "device_type", device_type, body)
    return AttrStmt(StringImm("default"), "device_id", device_id, body)


def _require_defined(name: str, body: Stmt, params: Sequence[Var]) -> None:
    missing = undefined_vars(body, params)
    if missing:
        names = ", ".join(variable.name for variable in missing)
        raise LoweringError(
            f"{name} uses {names}, which no argument gives; pass every tensor and every size that the function uses"
        )


@dataclass(frozen=True)
class MakePackedAPI(PrimFuncPass):
    """Give every function with a ``global_symbol`` the exported form; the last parameters can stay unpacked.

    With ``runtime_checks``, one call of the runtime checks the tensors whose form is known; else every check is written
    out, which every code generator understands.
    """

    num_unpacked_params: int = 0
    runtime_checks: bool = False
    name = "tir.MakePackedAPI"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return make_packed_api(function, max(self.num_unpacked_params, 0), self.runtime_checks)
