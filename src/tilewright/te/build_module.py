"""``lower`` and ``build``: from a schedule or a function to loops, and from loops to code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import codegen
from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import BufferLoad, Call, ProducerLoad, Var
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.runtime.module import Module
from tilewright.support.errors import LoweringError, TargetError
from tilewright.target import Target
from tilewright.te.schedule import Schedule, infer_bound, schedule_ops, to_prim_func
from tilewright.te.tensor import Tensor
from tilewright.tir.build_pipeline import device_passes, host_passes, mixed_passes
from tilewright.tir.function import PrimFunc
from tilewright.tir.pipeline import lowering_passes
from tilewright.tir.stmt import Block, BufferRealize, BufferStore, ProducerRealize, ProducerStore


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


def schedule_to_module(
    sch: Schedule,
    args: Sequence[Tensor | Buffer | Var] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> IRModule:
    """A module with one function: the loops of a schedule before any pass."""
    if args is None:
        raise LoweringError("lowering a schedule needs the list of its arguments")
    normalized = sch.normalize()
    ranges = infer_bound(normalized)
    keep_trivial = bool(PassContext.current().get("tir.debug_keep_trivial_loop"))
    body = schedule_ops(normalized, ranges, keep_trivial)
    function = to_prim_func(args, body, binds)
    noalias = bool(PassContext.current().get("tir.noalias"))
    attributes: dict[str, Any] = {"global_symbol": name}
    if noalias:
        attributes["tir.noalias"] = True
    return IRModule({name: function.with_attr(attributes)})


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
        module = IRModule({name: inp.with_attr("global_symbol", name)})
    elif isinstance(inp, IRModule):
        module = inp
    else:
        raise LoweringError(f"a schedule, a function or a module can be lowered, not {type(inp).__name__}")
    return Sequential(lowering_passes(simple_mode), name="lower")(module)


class OperatorModule(Module):
    """What ``build`` gives: the compiled module with the loops that it came from."""

    @classmethod
    def from_module(cls, mod: Module, **kwargs: Any) -> OperatorModule:
        """The module with these extras."""
        return cls(mod, **kwargs)

    def __init__(
        self,
        handle: Module,
        ir_module_by_target: Mapping[Target, IRModule] | None = None,
        name: str | None = None,
    ) -> None:
        self.__dict__.update(handle.__dict__)
        self.__class__ = type("OperatorModule", (OperatorModule, type(handle)), {})
        self.ir_module_by_target = dict(ir_module_by_target or {})
        self.name = name


def build(
    inputs: Any,
    args: Sequence[Tensor | Buffer | Var] | None = None,
    target: Any = None,
    target_host: Any = None,
    name: str = "default_function",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> Module:
    """Machine code. ``inputs`` is a schedule, a function, a module, or a dictionary from target to module.

    Functions that still have blocks or buffers of several dimensions are lowered first.
    """
    if isinstance(inputs, Schedule):
        inputs = lower(inputs, args, name, binds)
    elif isinstance(inputs, PrimFunc):
        inputs = lower(inputs, name=str(inputs.attrs.get("global_symbol", name)))
    elif isinstance(inputs, (list, tuple)):
        inputs = _merge(inputs)
    if isinstance(inputs, IRModule):
        chosen = Target.current() if target is None else target
        by_target = {_target("llvm" if chosen is None else chosen): _lowered(inputs)}
    elif isinstance(inputs, Mapping):
        by_target = {
            _target(one): _lowered(module) if isinstance(module, IRModule) else lower(module)
            for one, module in inputs.items()
        }
    else:
        raise LoweringError(f"a schedule, a function or a module can be built, not {type(inputs).__name__}")
    by_target = {one: _named(module) for one, module in by_target.items()}
    host = _host(target_host, list(by_target))
    return _build_targets(by_target, host)


def _named(module: IRModule) -> IRModule:
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


_NOT_FLAT = (Block, BufferLoad, BufferStore, BufferRealize, ProducerLoad, ProducerStore, ProducerRealize)


def _lowered(module: IRModule) -> IRModule:
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


def _merge(modules: Sequence[IRModule]) -> IRModule:
    """One module with the functions of all; a name that stands twice is an error."""
    merged = IRModule()
    for module in modules:
        if not isinstance(module, IRModule):
            raise LoweringError(f"a list of modules can be built, this has a {type(module).__name__}")
        for variable, function in module.functions.items():
            if variable.name_hint in [one.name_hint for one in merged.functions]:
                raise LoweringError(f"the function {variable.name_hint} stands in two of the modules")
            merged[variable.name_hint] = function
    return merged


def _target(given: Any) -> Target:
    return given if isinstance(given, Target) else Target(given)


def _host(given: Any, targets: Sequence[Target]) -> Target:
    """The target of the code that calls the others: the one given, a target's own, a CPU target itself, or this
    machine."""
    if given is not None:
        return _target(given)
    for target in targets:
        if target.host is not None:
            return target.host
    return next((target for target in targets if target.kind.name in ("llvm", "c")), Target("llvm"))


def _build_targets(by_target: Mapping[Target, IRModule], host: Target) -> Module:
    """Split each module into host and device parts, and build both."""
    host_module = IRModule()
    devices: list[Module] = []
    for target, module in by_target.items():
        mixed = Sequential(mixed_passes(target, host), name="mixed")(module)
        host_part = Sequential(host_passes(target, host), name="host")(mixed)
        device_part = Sequential(device_passes(target, host), name="device")(mixed)
        for variable, function in host_part.functions.items():
            host_module[variable.name_hint] = function
        if device_part.functions:
            devices.append(codegen.build(device_part, target))
    if not host_module.functions and not devices:
        raise TargetError("there is no function to build")
    built = codegen.build(host_module, host)
    for device in devices:
        built.import_module(device)
    return OperatorModule.from_module(built, ir_module_by_target=by_target)
