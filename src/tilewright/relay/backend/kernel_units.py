"""Primitive functions as units of the compiler: what their code is found by in the cache, and how a worker makes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tilewright.codegen import generator_for
from tilewright.compile import CacheReport, Unit, UnitRequest, compile_loops, compile_units
from tilewright.compile.dump import dump_passes, dump_text
from tilewright.compile.units import RemoteLowering, context_from_json, context_to_json
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
from tilewright.support.options import dump_folder
from tilewright.target import Target
from tilewright.target.cpu import describe_cpu

Lowering = Callable[[Function, Target, str], IRModule]
"""From a primitive function, a target and a name to a function of that name."""


_LOWERINGS: Final[dict[str, Lowering]] = {"kernel": lower_primitive, "shape function": lower_shape_function}


def compile_kernels(
    kernels: Mapping[str, tuple[Function, Target]],
    host: Target,
    shape_functions: Mapping[str, Function] | None = None,
    others: Sequence[UnitRequest] = (),
) -> tuple[dict[str, Unit], CacheReport]:
    """Code for every primitive function, for the shape functions of some, and for other functions, by name. Shapes are
    computed on the host."""
    requests = [
        *(_request(name, function, target, host, "kernel") for name, (function, target) in kernels.items()),
        *(
            _request(name, function, host, host, "shape function")
            for name, function in (shape_functions or {}).items()
        ),
        *others,
    ]
    return compile_units(requests, host)


def _request(name: str, function: Function, target: Target, host: Target, what: str) -> UnitRequest:
    def lower() -> IRModule:
        return _lower(function, target, name, what)

    if is_tuned():
        # A worker process knows nothing of the scopes that are entered here.
        return UnitRequest(name, target, lower)
    context = context_to_json(PassContext.current())
    if context is None or PassContext.current().get("tir.add_lower_pass") or not _is_own(function, target):
        return UnitRequest(name, target, lower)
    try:
        program = save_json(function, with_types=False)
    except SerializationError:
        return UnitRequest(name, target, lower)
    machine = describe_cpu(target) if "cpu" in target.keys else ""
    said = "\n".join([what, name, str(target), str(host), context, str(machine), program])
    shortcut = hashlib.sha256(said.encode()).hexdigest()
    payload = json.dumps([what, name, str(target), str(host), context, shortcut, program]).encode()
    return UnitRequest(name, target, lower, shortcut, RemoteLowering(compile_request, payload))


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


def compile_request(payload: bytes) -> bytes:
    """What a worker does for a primitive function, or for its shape function."""
    what, name, target_text, host_text, context, shortcut, program = json.loads(payload)
    target, host = Target(target_text), Target(host_text)
    with context_from_json(context):
        loops = _lower(infer_function(load_json(program)), target, name, what)
        unit, _ = compile_loops(loops, target, host, shortcut)
    return unit.to_bytes()


def _lower(function: Function, target: Target, name: str, what: str) -> IRModule:
    if dump_folder() is not None:
        dump_text(name, "0-relay.txt", function.astext(show_meta_data=False))
    with dump_passes(f"{name}/passes"):
        return _LOWERINGS[what](function, target, name)
