"""AutoScheduler and Relay: the functions of a model as tasks."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.dispatcher import DispatchContext, has_reduction
from tilewright.auto_scheduler.hardware_params import HardwareParams
from tilewright.auto_scheduler.layout_rewrite import LayoutRewriteOption
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.workload_registry import register_workload_tensors
from tilewright.ir.expr import IntImm
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay.backend.preparation import as_graph, as_module, prepared
from tilewright.relay.backend.targets import build_targets
from tilewright.relay.backend.te_compiler import tensor_expression
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import fusing_passes
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target, TargetLike
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor

logger = logging.getLogger("auto_scheduler")

_PREPARES_WEIGHTS = frozenset(
    {"nn.contrib_conv2d_winograd_weight_transform", "nn.contrib_conv3d_winograd_weight_transform"}
)
"""Operators on weights. With parameters that are part of the model they are computed once, before it runs."""


class _Collect(TuningScope):
    """Notes what is asked, and leaves it as it is."""

    def __init__(self) -> None:
        self.asked: list[ScheduleRequest] = []

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        self.asked.append(request)
        return None


def fused_functions(
    mod: IRModule | Function, params: Mapping[str, Any] | None, target: Target, opt_level: int = 3
) -> list[tuple[Function, int]]:
    """The fused functions of a model, one for each structure, and how often each is called."""
    targets = build_targets(target)
    with PassContext(opt_level=opt_level, config=dict(PassContext.current().config)):
        module = prepared(as_graph(as_module(mod)), targets, dict(params or {}))
        with recursion_room(), target:
            fused = infer_module(Sequential(fusing_passes(target, views=True), name="relay.fuse")(module))
    found: dict[int, tuple[Function, int]] = {}
    for function in fused.functions.values():
        for part in post_order(function):
            if isinstance(part, Call) and isinstance(part.op, Function) and part.op.is_primitive:
                if part.op.attrs.get("Compiler"):
                    continue  # for another code generator
                digest = structural_hash(part.op)
                _, count = found.get(digest, (part.op, 0))
                found[digest] = (part.op, count + 1)
    return list(found.values())


def call_all_topi_funcs(
    mod: IRModule | Function, params: Mapping[str, Any] | None, target: Target, opt_level: int = 3
) -> list[tuple[ScheduleRequest, int]]:
    """For each fused function of a model what its schedule is made for, and how often it is called."""
    found: list[tuple[ScheduleRequest, int]] = []
    for function, count in fused_functions(mod, params, target, opt_level):
        with _Collect() as scope:
            try:
                tensor_expression(function, target)
            except TilewrightError as error:
                logger.warning("a function is left out: %s", error.message)
                continue
        found += [(request, count) for request in scope.asked[:1]]
    return found


def extract_tasks(
    mod: IRModule | Function,
    params: Mapping[str, Any] | None,
    target: TargetLike,
    target_host: TargetLike | None = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | None = None,
    opt_level: int = 3,
) -> tuple[list[SearchTask], list[int]]:
    """The tasks of a model, and the weight of each: how often it is called.

    Functions without reductions are left out unless ``include_simple_tasks``; functions of unknown sizes, those with
    operations that are no computations, and those that only prepare weights always are. ``dump_workload_to_dag_log``
    names a file for the graph of each.
    """
    chosen = Target(target, target_host) if target_host is not None else Target(target)
    tasks: dict[str, SearchTask] = {}
    weights: dict[str, int] = {}
    for request, count in call_all_topi_funcs(mod, params, chosen, opt_level):
        if request.operator in _PREPARES_WEIGHTS:
            continue
        dag = _graph_of(request)
        if dag is None or not (include_simple_tasks or has_reduction(dag)):
            continue
        key = dag.workload_key()
        weights[key] = weights.get(key, 0) + count
        if key not in tasks:
            register_workload_tensors(key, dag.tensors)
            tasks[key] = SearchTask(
                compute_dag=dag,
                workload_key=key,
                target=chosen,
                hardware_params=hardware_params,
                # Weights that should have another layout got it in the graph.
                layout_rewrite_option=LayoutRewriteOption.NO_REWRITE,
                task_inputs=None,
                desc=request.operator,
            )
            tasks[key].construct = request.construct
    if dump_workload_to_dag_log is not None:
        texts = {key: str(task.compute_dag) for key, task in tasks.items()}
        Path(dump_workload_to_dag_log).write_text(json.dumps(texts), encoding="utf-8")
    return list(tasks.values()), [weights[key] for key in tasks]


def _graph_of(request: ScheduleRequest) -> ComputeDAG | None:
    """The graph of a function; None if states cannot describe it."""
    try:
        dag = ComputeDAG(list(request.arguments))
    except TilewrightError:
        return None
    if not all(isinstance(operation, (ComputeOp, PlaceholderOp)) for operation in dag.ops):
        return None
    computed = [operation for operation in dag.ops if isinstance(operation, ComputeOp)]
    ranges = [axis.dom for operation in computed for axis in operation.root_iter_vars]
    known = all(one is not None and isinstance(one.extent, IntImm) for one in ranges)
    return dag if computed and known else None


def traverse_to_get_io_tensors(outs: Sequence[Tensor]) -> tuple[list[Tensor], bool, bool]:
    """The inputs and outputs of a graph, whether an input may have any layout, and whether it has a reduction."""
    inputs: dict[Tensor, None] = {}
    seen: dict[Any, None] = {}
    layout_free = reduces = False
    pending = list(outs)
    while pending:
        tensor = pending.pop()
        if isinstance(tensor.op, PlaceholderOp):
            inputs[tensor] = None
        elif tensor.op not in seen:
            seen[tensor.op] = None
            layout_free = layout_free or "layout_free_placeholders" in tensor.op.attrs
            reduces = reduces or bool(getattr(tensor.op, "reduce_axis", ()))
            pending += reversed(tensor.op.input_tensors)
    return [*inputs, *outs], layout_free, reduces


def auto_schedule_topi(func_name: str, outs: Tensor | Sequence[Tensor]) -> Schedule | None:
    """The schedule of tensors by the current ``ApplyHistoryBest``; None if it has none."""
    outputs = [outs] if isinstance(outs, Tensor) else list(outs)
    tensors, _, reduces = traverse_to_get_io_tensors(outputs)
    context = DispatchContext.current
    if context is None:
        return None
    try:
        dag = ComputeDAG(tensors)
    except TilewrightError:
        return None
    target = Target.current() or Target("llvm")
    state = context.query(target, dag.workload_key(), reduces, dag, func_name)
    return None if state is None else dag.apply_steps_from_state(state)[0]


def is_auto_scheduler_enabled() -> bool:
    """True if the current ``PassContext`` has ``relay.backend.use_auto_scheduler``."""
    return bool(PassContext.current().config.get("relay.backend.use_auto_scheduler", False))
