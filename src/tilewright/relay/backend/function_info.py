"""What is known of the functions of a build: their sizes in bytes, and the programs that they were made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tilewright.ir.module import IRModule
from tilewright.relay.backend.graph import Entry, ExecutorGraph, byte_size, tensor_types
from tilewright.relay.backend.targets import BuildTargets
from tilewright.relay.function import Function
from tilewright.target import Target
from tilewright.tir.analysis import calculate_workspace_bytes
from tilewright.tir.function import PrimFunc

MAIN: Final = "__tvm_main__"
"""The model as a whole, among its functions."""


@dataclass(frozen=True)
class FunctionInfo:
    """Bytes and programs of a function by the targets that it runs on."""

    workspace_sizes: Mapping[Target, int] = field(default_factory=dict)
    """Memory that it needs while it runs; for kernels, only where the build kept their loops."""
    io_sizes: Mapping[Target, int] = field(default_factory=dict)
    """What it is given and returns."""
    constant_sizes: Mapping[Target, int] = field(default_factory=dict)
    tir_primfuncs: Mapping[Target, PrimFunc] = field(default_factory=dict)
    """Its loops: the build keeps those of code that is compiled ahead of time."""
    relay_primfuncs: Mapping[Target, Function] = field(default_factory=dict)


def function_metadata(
    main: Function,
    graph: ExecutorGraph,
    arenas: Mapping[int, int],
    targets: BuildTargets,
    loops: Iterable[IRModule] = (),
) -> dict[str, FunctionInfo]:
    """The model under ``MAIN``, and each of its kernels by name. ``arenas`` are the bytes of memory for intermediate
    tensors by the kind of device."""
    lowered = {
        str(variable.name_hint): function
        for module in loops
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc)
    }
    found = {MAIN: _of_model(main, graph, arenas, targets)}
    for name, function in graph.kernels.items():
        target = targets.of(graph.kernel_devices[name])
        signature = function.checked_type
        types = [one for each in (*signature.arg_types, signature.ret_type) for one in tensor_types(each)]
        made = lowered.get(name)
        found[name] = FunctionInfo(
            workspace_sizes={} if made is None else {target: calculate_workspace_bytes(made, 1)},
            io_sizes={target: sum(map(byte_size, types))},
            tir_primfuncs={} if made is None else {target: made},
            relay_primfuncs={target: function},
        )
    return found


def _of_model(
    main: Function, graph: ExecutorGraph, arenas: Mapping[int, int], targets: BuildTargets
) -> FunctionInfo:
    io_sizes: dict[Target, int] = {}
    constant_sizes: dict[Target, int] = {}
    for entry in [*map(Entry, graph.inputs), *graph.outputs]:
        target = targets.of(graph.nodes[entry.node].device)
        io_sizes[target] = io_sizes.get(target, 0) + byte_size(graph.type_of(entry))
    for node in graph.nodes:
        if node.value is not None:
            target = targets.of(node.device)
            constant_sizes[target] = constant_sizes.get(target, 0) + sum(map(byte_size, node.outputs))
    return FunctionInfo(
        workspace_sizes={targets.of(device): size for device, size in arenas.items()},
        io_sizes=io_sizes,
        constant_sizes=constant_sizes,
        relay_primfuncs={targets.default: main},
    )
