"""The time of every kernel of a program in the virtual machine, whose shapes are known only while it runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.driver.profile.graphs import DrawnGraph, DrawnNode, plain_name
from tilewright.driver.profile.kernels import SHAPE_FUNCTION, KernelProfile, Step, short_name
from tilewright.driver.profile.layout import layered_layout
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.analysis.work import (
    arithmetic_dtype,
    count_bytes,
    count_flops,
    count_operations,
    source_names,
)
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.runtime.call_log import CallLog, LoggedCall, LoggedTensor
from tilewright.runtime.device import Device, cpu
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.support.errors import ModelError, TilewrightError


def require_host(device: Device) -> None:
    """An error for a device that works beside the host: the machine's clock does not see when its kernels end."""
    if device.kind != "cpu":
        raise ModelError(
            f"kernels of the virtual machine cannot be timed one by one on {device.kind}: give the model constant "
            "sizes and compile it for the graph executor, or measure whole runs"
        )


def measure_program(
    executable: Executable,
    arguments: Sequence[Any],
    functions: Mapping[str, Sequence[Function]] | None = None,
    repeat: int = 10,
) -> KernelProfile:
    """Run ``main`` of a program ``repeat`` times on the same arguments, with a clock at every kernel. ``functions`` has
    the Relay functions of the kernels by name, which say what each computes; without it only the bytes are known."""
    if repeat < 1:
        raise ModelError(f"repeat is at least 1, not {repeat}")
    log = CallLog()
    machine = VirtualMachine(executable, cpu(0), log=log)
    machine.set_input("main", *arguments)
    machine.invoke("main")  # the threads are awake and the caches warm when the clock starts
    runs: list[list[LoggedCall]] = []
    wholes: list[float] = []
    for _ in range(repeat):
        log.clear()
        started = time.perf_counter()
        machine.invoke("main")
        wholes.append(time.perf_counter() - started)
        runs.append(log.calls())
    names = [call.name for call in runs[0]]
    same = [run for run in runs if [call.name for call in run] == names]
    steps = [
        _step(position, call, statistics.median(run[position].seconds for run in same), functions)
        for position, call in enumerate(runs[0])
    ]
    return KernelProfile(tuple(steps), statistics.median(wholes), repeat)


def _step(
    position: int, call: LoggedCall, seconds: float, functions: Mapping[str, Sequence[Function]] | None
) -> Step:
    moved = sum(tensor.size_bytes for tensor in call.tensors)
    base = (position, f"{short_name(call.name)}_{position}", call.name, seconds)
    shapes = tuple(tensor.text() for tensor in call.tensors[-1:])
    if call.name.startswith(SHAPE_FUNCTION):
        return Step(*base, 0, moved, shapes, ())
    known = (functions or {}).get(call.name)
    if not known:
        return Step(*base, None, moved, shapes, ())
    inputs = len(known[0].params)
    shapes = tuple(tensor.text() for tensor in call.tensors[inputs:])
    nodes = tuple(dict.fromkeys(name for function in known for name in source_names(function)))
    function = specialized(known[0], call.tensors[:inputs])
    if function is None:
        return Step(*base, None, moved, shapes, nodes)
    return Step(
        *(*base, count_flops(function), count_bytes(function), shapes, nodes),
        operations=count_operations(function),
        arithmetic=arithmetic_dtype(function),
    )


def specialized(function: Function, inputs: Sequence[LoggedTensor]) -> Function | None:
    """A function with the shapes that it was called with, typed; None where these do not say every shape in it."""
    if len(inputs) != len(function.params):
        return None
    fixed = [
        Var(parameter.name_hint, TensorType(tensor.shape, tensor.dtype))
        for parameter, tensor in zip(function.params, inputs, strict=True)
    ]
    try:
        body = bind(function.body, dict(zip(function.params, fixed, strict=True)))
        made = infer_function(Function(fixed, body))
        count_flops(made)
        count_bytes(made)
    except TilewrightError:
        return None
    return made


def call_graph(profile: KernelProfile) -> DrawnGraph:
    """The kernels in the order in which the machine called them."""
    nodes = tuple(
        DrawnNode(
            plain_name(step.kernel),
            ", ".join(step.shapes),
            step.model_nodes,
            step.kernel,
            "kernel",
            step.node,
        )
        for step in profile.steps
    )
    edges = tuple((number, number + 1) for number in range(len(nodes) - 1))
    return DrawnGraph(nodes, edges, layered_layout(len(nodes), list(edges)))
