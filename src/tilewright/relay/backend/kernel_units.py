"""Primitive functions as units of the compiler: what their code is found by in the cache, and how a worker makes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping

from tilewright.codegen import generator_for
from tilewright.compile import CacheReport, Unit, UnitRequest, compile_loops, compile_units
from tilewright.compile.dump import dump_passes, dump_text
from tilewright.compile.units import RemoteLowering, context_from_json, context_to_json
from tilewright.compile.workers import Job
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.serialize import SerializationError, load_json, save_json
from tilewright.ir.transform import PassContext
from tilewright.relay.backend.implementation import is_own
from tilewright.relay.backend.shape_functions import lower_shape_function
from tilewright.relay.backend.te_compiler import lower_primitive
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.schedule.tuning import is_tuned
from tilewright.target import Target
from tilewright.target.cpu import describe_cpu

Lowering = Callable[[Function, Target, str], IRModule]
"""From a primitive function, a target and a name to a function of that name."""


def compile_kernels(
    kernels: Mapping[str, tuple[Function, Target]], host: Target
) -> tuple[dict[str, Unit], CacheReport]:
    """Code for every primitive function, by name."""
    requests = [
        _request(name, function, target, host, lower_primitive, compile_primitive)
        for name, (function, target) in kernels.items()
    ]
    return compile_units(requests, host)


def compile_shape_functions(functions: Mapping[str, Function], host: Target) -> dict[str, Unit]:
    """Code for the shape function of every primitive function, by name. Shapes are computed on the host."""
    requests = [
        _request(name, function, host, host, lower_shape_function, compile_shape_function)
        for name, function in functions.items()
    ]
    return compile_units(requests, host)[0]


def _request(
    name: str, function: Function, target: Target, host: Target, lowering: Lowering, job: Job
) -> UnitRequest:
    def lower() -> IRModule:
        return _lower(function, target, name, lowering)

    if is_tuned():
        # A worker process knows nothing of the scopes that are entered here.
        return UnitRequest(name, target, lower)
    context = context_to_json(PassContext.current())
    if context is None or PassContext.current().get("tir.add_lower_pass") or not _is_own(function, target):
        return UnitRequest(name, target, lower)
    try:
        program = save_json(function)
    except SerializationError:
        return UnitRequest(name, target, lower)
    machine = describe_cpu(target) if "cpu" in target.keys else ""
    said = "\n".join([lowering.__name__, name, str(target), str(host), context, str(machine), program])
    shortcut = hashlib.sha256(said.encode()).hexdigest()
    payload = json.dumps([name, str(target), str(host), context, shortcut, program]).encode()
    return UnitRequest(name, target, lower, shortcut, RemoteLowering(job, payload))


def _is_own(function: Function, target: Target) -> bool:
    """True if everything that decides the code of a primitive function is this package's own."""
    generator = type(generator_for(target))
    return generator.__module__.startswith("tilewright.") and all(
        is_own(op, target) for op in _operators(function)
    )


def _operators(function: Function) -> Iterator[Op]:
    seen: set[RelayExpr] = set()
    pending: list[RelayExpr] = [function.body]
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Call):
            if isinstance(expr.op, Op):
                yield expr.op
            pending += [*expr.args, *([expr.op.body] if isinstance(expr.op, Function) else [])]
        elif isinstance(expr, (Tuple, TupleGetItem)):
            pending += expr.children()  # type: ignore[arg-type]


def compile_primitive(payload: bytes) -> bytes:
    """What a worker does for a primitive function."""
    return _compile(payload, lower_primitive)


def compile_shape_function(payload: bytes) -> bytes:
    """What a worker does for a shape function."""
    return _compile(payload, lower_shape_function)


def _compile(payload: bytes, lowering: Lowering) -> bytes:
    name, target_text, host_text, context, shortcut, program = json.loads(payload)
    target, host = Target(target_text), Target(host_text)
    with context_from_json(context):
        loops = _lower(infer_function(load_json(program)), target, name, lowering)
        unit, _ = compile_loops(loops, target, host, shortcut)
    return unit.to_bytes()


def _lower(function: Function, target: Target, name: str, lowering: Lowering) -> IRModule:
    dump_text(name, "0-relay.txt", function.astext(show_meta_data=False))
    with dump_passes(f"{name}/passes"):
        return lowering(function, target, name)
