"""Tasks of Relay programs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.autotvm.task.constructed.description import described
from tilewright.autotvm.task.constructed.kinds import KINDS, operators_with_tasks, workloads_of
from tilewright.autotvm.task.task import Task, create
from tilewright.autotvm.task.topi_integration import TaskExtractEnv
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay import transform
from tilewright.relay.backend.preparation import as_module, bind_params_by_name, prepared
from tilewright.relay.backend.targets import build_targets
from tilewright.relay.backend.te_compiler import tensor_expression
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import fusing_passes
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target

logger = logging.getLogger("autotvm")

Workload = tuple[Any, ...]


def extract_from_program(
    mod: Any, params: Any, target: Any, target_host: Any = None, ops: Sequence[Any] | None = None
) -> list[Task]:
    """The tasks of a program: the calls of operators that a build compiles, each distinct one once. ``ops`` selects
    operators, also such as have no task without being asked for (pooling, softmax)."""
    return extract_from_multiple_program([mod], [params], target, target_host, ops)


def extract_from_multiple_program(
    mods: Sequence[Any],
    params: Sequence[Any],
    target: Any,
    target_host: Any = None,
    ops: Sequence[Any] | None = None,
) -> list[Task]:
    """The tasks of several programs, each distinct one once."""
    target, target_host = Target.check_and_update_host_consist(target, target_host)
    wanted = None if ops is None else [_operator_name(op) for op in ops]
    found: dict[Workload, None] = {}
    for mod, given in zip(mods, params, strict=True):
        for workload in _workloads(as_module(mod), given or {}, target, wanted):
            found.setdefault(workload)
    tasks = []
    for name, *args in found:
        try:
            tasks.append(create(name, args, target=target, target_host=target_host))
        except TilewrightError as problem:
            logger.warning("the task %s of this program cannot be tuned: %s", (name, *args), problem)
    return tasks


def _operator_name(op: Any) -> str:
    if isinstance(op, Op):
        return op.name
    if isinstance(op, str):
        return op
    raise TilewrightError(f"ops is a list of operators, such as relay.op.get('nn.conv2d'), not of {op!r}")


def _workloads(mod: IRModule, params: Any, target: Target, wanted: list[str] | None) -> Iterator[Workload]:
    with PassContext(opt_level=3, disabled_pass=["AlterOpLayout"]):
        late = prepared(mod, build_targets(target), params)
    rewritten = {kind.operator for kind in KINDS.values() if kind.is_rewritten}
    early = [name for name in wanted or () if name in rewritten]
    operators = operators_with_tasks() if wanted is None else [name for name in wanted if name not in early]
    if early:
        yield from _of_calls(_before_rewrites(mod, params), target, early, True)
    yield from _of_calls(late, target, operators, wanted is not None)
    yield from _of_templates(late, target, wanted)


def _before_rewrites(mod: IRModule, params: Any) -> IRModule:
    """The program before passes make other operators of some."""
    main = mod["main"]
    if params and isinstance(main, Function):
        mod = mod.with_functions(
            {**mod.functions, mod.get_global_var("main"): bind_params_by_name(main, params)}
        )
    return Sequential([transform.SimplifyInference(), transform.InferType()])(infer_module(mod))


def _of_calls(
    mod: IRModule, target: Target, operators: Sequence[str], everything: bool
) -> Iterator[Workload]:
    for call in _calls(mod):
        if call.op.name in operators:
            types = [argument.checked_type for argument in call.args]
            if all(isinstance(kind, TensorType) for kind in types):
                description = described(call.op.name, call.attrs, types)
                if description is not None:
                    yield from workloads_of(description, target, everything)


def _calls(mod: IRModule) -> Iterator[Any]:
    for function in mod.functions.values():
        if isinstance(function, Function):
            for part in post_order(function):
                if isinstance(part, Call) and isinstance(part.op, Op):
                    yield part


def _of_templates(mod: IRModule, target: Target, wanted: list[str] | None) -> Iterator[Workload]:
    """The tasks of users' own templates, which strategies of theirs use: found by computing every function."""
    users = [
        call
        for call in _calls(mod)
        if call.op.get_attr("FTVMStrategy") is not None and (wanted is None or call.op.name in wanted)
    ]
    if not users:
        return
    fused = Sequential(fusing_passes(target))(mod)
    with TaskExtractEnv.get() as environment:
        for function in {
            id(part.op): part.op
            for part in post_order(fused["main"])
            if isinstance(part, Call) and isinstance(part.op, Function)
        }.values():
            tensor_expression(function, target)
    for name, args in environment.get_tasks():
        yield (name, *args)


__all__ = ["extract_from_multiple_program", "extract_from_program"]
