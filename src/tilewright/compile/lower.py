"""From a schedule, a function or a module to loops in flat memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import BufferLoad, Call, PrimExpr, ProducerLoad, Var, is_const
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.support.errors import LoweringError
from tilewright.te.schedule import Schedule, infer_bound, schedule_ops, to_prim_func
from tilewright.te.tensor import Tensor
from tilewright.tir.function import PrimFunc
from tilewright.tir.pipeline import lowering_passes
from tilewright.tir.stmt import Block, BufferRealize, BufferStore, ProducerRealize, ProducerStore, Stmt


def get_binds(
    args: Sequence[Any], compact: bool = False, binds: Mapping[Tensor, Buffer] | None = None
) -> tuple[dict[Tensor, Buffer], list[Any]]:
    """A buffer for every tensor among the arguments, and the arguments with buffers in the place of tensors.

    Unless ``compact``, dimensions that are not constants may be broadcast.
    """
    bound = dict(binds or {})
    arguments: list[Any] = []
    for argument in args:
        if isinstance(argument, Tensor):
            if argument not in bound:
                symbolic = any(isinstance(extent, Var) for extent in argument.shape)
                kind = "auto_broadcast" if symbolic and not compact else ""
                bound[argument] = decl_buffer(argument.shape, argument.dtype, argument.name, buffer_type=kind)
            arguments.append(bound[argument])
        elif isinstance(argument, (Buffer, Var)):
            arguments.append(argument)
        else:
            raise LoweringError(f"an argument is a tensor, a buffer or a variable, not {argument!r}")
    return bound, arguments


def _broadcast_binds(args: Sequence[Any], body: Stmt) -> dict[Tensor, Buffer]:
    """Buffers for tensors with dimensions whose sizes no loop knows: one of size one is broadcast, as in TVM. Strides
    of other dimensions stay those of a compact array."""
    symbolic = [
        argument
        for argument in args
        if isinstance(argument, Tensor) and any(isinstance(extent, Var) for extent in argument.shape)
    ]
    if not symbolic:
        return {}
    known = {node for node in post_order(body) if isinstance(node, Var)}
    found: dict[Tensor, Buffer] = {}
    for tensor in symbolic:
        unknown = [isinstance(extent, Var) and extent not in known for extent in tensor.shape]
        if not any(unknown):
            continue
        strides: list[PrimExpr] = []
        compact: PrimExpr = operators.const(1, tensor.shape[-1].dtype)
        for position in reversed(range(len(tensor.shape))):
            extent = tensor.shape[position]
            # A dimension of one element may have any stride.
            any_stride = unknown[position] or is_const(extent, 1)
            strides.insert(
                0, Var(f"{tensor.name}_stride_{position}", extent.dtype) if any_stride else compact
            )
            compact = operators.multiply(compact, operators.cast(compact.dtype, extent))
        found[tensor] = decl_buffer(
            tensor.shape, tensor.dtype, tensor.name, strides=strides, buffer_type="auto_broadcast"
        )
    return found


def schedule_to_module(
    sch: Schedule,
    args: Sequence[Tensor | Buffer | Var] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> IRModule:
    """A module with one function: the loops of a schedule before any pass."""
    if args is None or isinstance(args, Tensor):
        given = "" if args is None else ", not one tensor"
        raise LoweringError(f"lowering a schedule needs the list of its arguments{given}")
    normalized = sch.normalize()
    for argument in args:
        if isinstance(argument, Tensor) and argument in normalized:
            normalized[argument].require_global()
    ranges = infer_bound(normalized)
    keep_trivial = bool(PassContext.current().get("tir.debug_keep_trivial_loop"))
    body = schedule_ops(normalized, ranges, keep_trivial)
    function = to_prim_func(args, body, {**_broadcast_binds(args, body), **(binds or {})})
    attributes = {"global_symbol": name, **_aliasing()}
    return IRModule({name: function.with_attr(attributes)})


def _aliasing() -> dict[str, Any]:
    """The attribute of functions whose arguments do not overlap, unless the context says that they may."""
    return {"tir.noalias": True} if PassContext.current().get("tir.noalias") else {}


def lower(
    inp: Schedule | PrimFunc | IRModule,
    args: Sequence[Tensor | Buffer | Var] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Loops in flat memory; with ``simple_mode`` loops are not partitioned, which makes them shorter to read."""
    if isinstance(inp, Schedule):
        module = schedule_to_module(inp, args, name, binds)
    elif isinstance(inp, PrimFunc):
        module = IRModule({name: inp.with_attr({"global_symbol": name, **_aliasing()})})
    elif isinstance(inp, IRModule):
        module = inp
    else:
        raise LoweringError(f"a schedule, a function or a module can be lowered, not {type(inp).__name__}")
    return Sequential(lowering_passes(simple_mode), name="lower")(module)


_NOT_FLAT = (Block, BufferLoad, BufferStore, BufferRealize, ProducerLoad, ProducerStore, ProducerRealize)


def lower_module(module: IRModule) -> IRModule:
    """The module with each function lowered that is not flat yet; lowering has its order of passes, so it is not
    done twice."""
    rest = {
        variable.name_hint: function
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc)
        and any(isinstance(part, _NOT_FLAT) for part in post_order(function.body))
    }
    if not rest:
        return module
    whole = IRModule(module.functions, module.type_definitions, module.attrs)
    for variable, function in lower(IRModule(rest)).functions.items():
        whole[variable.name_hint] = function
    return whole


def with_symbols(module: IRModule) -> IRModule:
    """The module with a "global_symbol" for each function that only callers from outside can mean: one that nothing
    in the module calls, or that takes tensors."""
    functions = {
        variable: function
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc)
    }
    called = {
        part.op.name_hint
        for function in functions.values()
        for part in post_order(function.body)
        if isinstance(part, Call) and isinstance(part.op, GlobalVar)
    }
    whole = IRModule(module.functions, module.type_definitions, module.attrs)
    for variable, function in functions.items():
        name = variable.name_hint
        if "global_symbol" not in function.attrs and (name not in called or function.buffer_map):
            whole[name] = function.with_attr("global_symbol", name)
    return whole
