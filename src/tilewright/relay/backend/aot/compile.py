"""``compile_aot``: a graph, its parameters and its kernels become one C function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright import codegen
from tilewright.codegen.c.brought_source import brought_sources
from tilewright.codegen.c.host import generate_c
from tilewright.codegen.c.names import C_KEYWORDS, Names, identifier
from tilewright.ir.expr import Call, StringImm
from tilewright.ir.function import BaseFunc
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import Sequential
from tilewright.relay.backend.aot.constants import as_c, as_llvm, pack_constants
from tilewright.relay.backend.aot.entry import ModelFunctions
from tilewright.relay.backend.aot.kernels import Kernel, KernelSource, find_kernel, plain_kernels
from tilewright.relay.backend.aot.module import AOTModule
from tilewright.relay.backend.aot.plan import plan_memory
from tilewright.relay.backend.graph import ExecutorGraph
from tilewright.relay.backend.graph_json import graph_json
from tilewright.relay.backend.graph_read import read_graph
from tilewright.relay.backend.memory_plan import plan_graph_memory
from tilewright.relay.backend.places import results
from tilewright.runtime.module import Module, SourceModule
from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.params import load_param_dict
from tilewright.support.errors import LoweringError, ModelError, TargetError
from tilewright.target import Target
from tilewright.tir.build_pipeline import host_passes
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt


def compile_aot(
    graph: ExecutorGraph | str,
    params: Mapping[str, Any] | bytes | None,
    kernels: KernelSource,
    target: Any = "llvm",
    name: str = "model",
    *,
    interface: str | None = None,
    unpacked_api: bool | None = None,
    embed_constants: bool = True,
) -> AOTModule:
    """Compile a graph for machines without a runtime.

    ``graph`` is a graph, or its text as the graph executor takes it; ``params`` are the values of inputs that are
    constants, ``kernels`` the functions that the graph's nodes call: a lowered module, functions, or several. The
    result has one entry for C, ``tilewright_<name>_run``, which allocates nothing and needs only libc. With
    ``interface="packed"`` it has ``__tvm_ffi_<name>`` beside it, whose errors need the runtime that
    ``export_library`` links in. ``unpacked_api=True`` is another way to say ``interface="c"``, which is the default; a
    target's ``-interface-api`` and ``-unpacked-api`` count where neither is given. With ``embed_constants=False`` the
    caller provides the parameters' memory too, filled from ``AOTModule.constants``.
    """
    chosen = Target(target)
    if chosen.kind.name not in ("c", "llvm"):
        raise TargetError(
            f"models are compiled ahead of time for the targets c and llvm, not {chosen.kind.name}"
        )
    if identifier(name) != name:
        raise ModelError(f"{name!r} cannot be a model's name, which becomes part of C names")
    interface = _interface(chosen, interface, unpacked_api)
    if isinstance(graph, str):
        graph = read_graph(graph)
    values = _values(graph, params)
    graph = _with_values(graph, values)
    if not isinstance(kernels, (IRModule, PrimFunc)):
        kernels = list(kernels)
    brought = brought_sources(_functions(kernels))
    if brought and chosen.kind.name != "c":
        raise TargetError(
            "kernels of this model bring C source, which becomes part of the model's: "
            f"use the target c, not {chosen.kind.name}"
        )
    plain = plain_kernels(kernels, chosen)
    scratch = _check_calls(graph, plain)
    plan = plan_memory(graph, scratch)
    names = Names([*C_KEYWORDS, *(f"tilewright_{name}_{part}" for part in ("run", "body", "constants"))])
    symbols = {kernel: names.fresh(f"tilewright_{name}_{kernel}") for kernel in plain}
    functions = ModelFunctions(name, graph, plan, plain, symbols, embed_constants)
    constants = pack_constants(plan, {graph.nodes[number].name: number for number in plan.constants}, values)
    loops = _loops(functions, chosen, interface)
    lib = _build(loops, functions, chosen, interface, constants, brought)
    text = graph_json(graph, plan_graph_memory(graph))
    return AOTModule(functions, chosen, interface, lib, loops, constants, values, text)


def _functions(kernels: KernelSource) -> Iterator[BaseFunc]:
    """The kernels one by one, however they are given."""
    if isinstance(kernels, BaseFunc):
        yield kernels
    elif isinstance(kernels, IRModule):
        yield from kernels.functions.values()
    else:
        for one in kernels:
            yield from _functions(one)


def _interface(target: Target, interface: str | None, unpacked_api: bool | None) -> str:
    """How the model is called: "c" or "packed". How its operators are called (``unpacked_api``) only decides where
    nothing else does, but a C function of packed operators is what TVM refuses, too."""
    if unpacked_api is None and interface is None:
        said = target.attrs.get("interface-api")
        unpacked_api = target.attrs.get("unpacked-api")
        interface = str(said) if said is not None else None
    implied = None if unpacked_api is None else "c" if unpacked_api else "packed"
    chosen = interface or implied or "c"
    if chosen not in ("c", "packed"):
        raise TargetError(f"a model's interface is 'c' or 'packed', not {chosen!r}")
    if chosen == "c" and implied == "packed":
        raise TargetError(
            "Packed interface required for packed operators: 'c' contradicts unpacked_api=False"
        )
    return chosen


def _values(graph: ExecutorGraph, params: Mapping[str, Any] | bytes | None) -> dict[str, NDArray]:
    """The parameters that the graph has, as arrays of the shapes and types that it says."""
    given = load_param_dict(params) if isinstance(params, (bytes, bytearray)) else dict(params or {})
    values: dict[str, NDArray] = {}
    for node in graph.nodes:
        if node.kernel is not None or node.name not in given:
            continue
        value = given[node.name]
        made = value if isinstance(value, NDArray) else array(value)
        wanted = node.outputs[0]
        shape = wanted.concrete_shape
        if tuple(made.shape) != shape or made.dtype != wanted.dtype:
            raise ModelError(
                f"the parameter {node.name!r} is {made.dtype} of shape {list(made.shape)}; "
                f"the graph has {wanted.dtype} of shape {list(shape)}"
            )
        values[node.name] = made
    return values


def _with_values(graph: ExecutorGraph, values: Mapping[str, NDArray]) -> ExecutorGraph:
    """The graph whose parameters are constants."""
    nodes = [
        replace(node, value=values.get(node.name)) if node.kernel is None else node for node in graph.nodes
    ]
    return replace(graph, nodes=nodes)


def _check_calls(graph: ExecutorGraph, kernels: Mapping[str, Kernel]) -> dict[int, int]:
    """Compare every call with its kernel; the scratch memory that each node needs, where it needs some."""
    scratch: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        if node.kernel is None or node.is_view:
            continue
        kernel = find_kernel(kernels, node)
        kernel.check_call(node, [graph.type_of(entry) for entry in (*node.inputs, *results(number, node))])
        if kernel.scratch:
            scratch[number] = kernel.scratch
    return scratch


def _loops(functions: ModelFunctions, target: Target, interface: str) -> IRModule:
    """Every function of the model, ready for a code generator. What C does not call is internal."""
    module = IRModule()
    used = {node.kernel for node in functions.graph.nodes}
    for name, kernel in functions.kernels.items():
        if name in used:
            module[functions.kernel_symbols[name]] = kernel.function.without_attr("global_symbol")
    module[functions.body_symbol] = functions.body()
    module[functions.entry_symbol] = functions.c_entry()
    made = Sequential(host_passes(target, target), name="aot")(module)
    own = {variable.name_hint for variable in made.functions}
    _check_independent(made, own | {functions.constants_symbol})
    if interface == "packed":
        packed = IRModule({functions.name: functions.packed_entry(target)})
        for variable, function in Sequential(host_passes(target, target))(packed).functions.items():
            made[variable.name_hint] = function
    return made


def _check_independent(module: IRModule, own: set[str]) -> None:
    """Raises an error for a call that needs the runtime."""
    for variable, function in module.functions.items():
        assert isinstance(function, PrimFunc)
        for found in post_order(function.body):
            if not isinstance(found, Call) or not isinstance(found.op, Op):
                continue
            name = found.args[0].value if found.args and isinstance(found.args[0], StringImm) else ""
            packed = found.op.name == "tir.tvm_call_packed_lowered"
            runtime = name.startswith("tilewright_") and name not in own
            if packed or (found.op.name == "tir.call_extern" and runtime):
                raise LoweringError(
                    f"{variable.name_hint} calls {name}, which needs the runtime: "
                    "compiled ahead of time, kernels can only call C functions"
                )


def _build(
    loops: IRModule,
    functions: ModelFunctions,
    target: Target,
    interface: str,
    constants: bytes,
    brought: Sequence[str],
) -> Module:
    embedded = bool(functions.plan.constants) and functions.embed_constants
    if target.kind.name == "llvm":
        return codegen.build(_with_constants(loops, functions, constants) if embedded else loops, target)
    head = as_c(functions.constants_symbol, constants) if embedded else ""
    names = [functions.name] if interface == "packed" else []
    mark = (
        "__attribute__((weak)) const char __tilewright_functions[]"  # a library's own list takes precedence
    )
    tail = f'{mark} = "{functions.name}";\n' if names else ""
    text = "\n".join([*brought, head + generate_c(loops) + tail])
    return SourceModule(text, format="c", type_key="c", function_names=names)


def _with_constants(loops: IRModule, functions: ModelFunctions, constants: bytes) -> IRModule:
    """The module with LLVM IR beside it that holds the constants; separate from the loops, to keep those readable."""
    text = StringImm(as_llvm(functions.constants_symbol, constants))

    def change(variable: GlobalVar, function: BaseFunc) -> BaseFunc:
        if variable.name_hint != functions.entry_symbol:
            return function
        assert isinstance(function, PrimFunc)
        return function.with_body(
            AttrStmt(StringImm(functions.name), "pragma_import_llvm", text, function.body)
        )

    return loops.map_functions(change)
