"""AutoScheduler and Relay: the functions of a model as tasks."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.dispatcher import DispatchContext, has_reduction
from tilewright.auto_scheduler.hardware_params import HardwareParams
from tilewright.auto_scheduler.layout_rewrite import LayoutRewriteOption
from tilewright.auto_scheduler.loop_parts import read_axes
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.workload_registry import register_workload_tensors
from tilewright.ir.expr import IntImm
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay.backend.preparation import as_graph, as_module, prepared
from tilewright.relay.backend.targets import build_targets
from tilewright.relay.backend.te_compiler import schedule_request
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import fusing_passes
from tilewright.relay.transform.auto_scheduler_layout_rewrite import weight_of
from tilewright.schedule.tuning import ScheduleRequest, untuned
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.target.target import Target, TargetLike
from tilewright.te.operation import ComputeOp, PlaceholderOp, placeholder
from tilewright.te.rewritten_layout import RewrittenLayout, reading
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor

logger = logging.getLogger("auto_scheduler")

_PREPARES_WEIGHTS = frozenset(
    {"nn.contrib_conv2d_winograd_weight_transform", "nn.contrib_conv3d_winograd_weight_transform"}
)
"""Operators on weights. With parameters that are part of the model they are computed once, before it runs."""


@dataclass
class FusedFunction:
    """A fused function of a model, and what its calls have in common."""

    function: Function
    count: int
    """How often it is called."""
    constant: set[int]
    """The places of the parameters that are constants in every call."""


def fused_functions(
    mod: IRModule | Function, params: Mapping[str, Any] | None, target: Target, opt_level: int = 3
) -> list[FusedFunction]:
    """The fused functions of a model, one for each structure."""
    targets = build_targets(target)
    with PassContext(opt_level=opt_level, config=dict(PassContext.current().config)):
        module = prepared(as_graph(as_module(mod)), targets, dict(params or {}))
        # Weights keep their layouts: a search starts from the model's own.
        with recursion_room(), target, untuned():
            fused = infer_module(Sequential(fusing_passes(target, views=True), name="relay.fuse")(module))
    found: dict[int, FusedFunction] = {}
    for function in fused.functions.values():
        for part in post_order(function):
            if isinstance(part, Call) and isinstance(part.op, Function) and part.op.is_primitive:
                if part.op.attrs.get("Compiler"):
                    continue  # for another code generator
                constant = {place for place, one in enumerate(part.args) if isinstance(one, Constant)}
                known = found.setdefault(structural_hash(part.op), FusedFunction(part.op, 0, constant))
                known.count += 1
                known.constant &= constant
    return list(found.values())


def _requests(
    mod: IRModule | Function, params: Mapping[str, Any] | None, target: Target, opt_level: int
) -> Iterator[tuple[FusedFunction, ScheduleRequest]]:
    """The fused functions of a model that have a schedule, and what it is made for."""
    for fused in fused_functions(mod, params, target, opt_level):
        try:
            request = schedule_request(fused.function, target)
        except TilewrightError as error:
            logger.warning("a function is left out: %s", error.message)
            continue
        if request is not None:
            yield fused, request


def call_all_topi_funcs(
    mod: IRModule | Function, params: Mapping[str, Any] | None, target: Target, opt_level: int = 3
) -> list[tuple[ScheduleRequest, int]]:
    """For each fused function of a model what its schedule is made for, and how often it is called."""
    return [(request, fused.count) for fused, request in _requests(mod, params, target, opt_level)]


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
    for fused, request in _requests(mod, params, chosen, opt_level):
        if request.operator in _PREPARES_WEIGHTS:
            continue
        dag = _graph_of(request)
        if dag is None or not (include_simple_tasks or has_reduction(dag)):
            continue
        key = dag.workload_key()
        weights[key] = weights.get(key, 0) + fused.count
        option = _layout_option(fused, chosen)
        if key not in tasks:
            register_workload_tensors(key, dag.tensors)
            tasks[key] = SearchTask(
                compute_dag=dag,
                workload_key=key,
                target=chosen,
                hardware_params=hardware_params,
                layout_rewrite_option=option,
                task_inputs=None,
                desc=request.operator,
            )
            tasks[key].construct = request.construct
        # Functions of one computation share a record: it must fit them all.
        tasks[key].layout_rewrite_option = min(option, tasks[key].layout_rewrite_option)
    if dump_workload_to_dag_log is not None:
        texts = {key: str(task.compute_dag) for key, task in tasks.items()}
        Path(dump_workload_to_dag_log).write_text(json.dumps(texts), encoding="utf-8")
    return list(tasks.values()), [weights[key] for key in tasks]


def _layout_option(fused: FusedFunction, target: Target) -> LayoutRewriteOption:
    """What happens to the weights of a function: those that are constants are rewritten when the model is compiled."""
    found = weight_of(fused.function)
    if found is None or found[1] not in fused.constant:
        return LayoutRewriteOption.NO_REWRITE
    return LayoutRewriteOption.get_target_default(target, in_relay_integration=True)


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


def rewrite_compute_body(compute_tensor: Tensor, new_layout: str) -> Tensor:
    """A computation with its input that may have any layout, a placeholder, in this one (``4k16j8k``, with the names of
    the computation's axes)."""
    operation = compute_tensor.op
    free = [*operation.attrs.get("layout_free_placeholders", ())]
    if len(free) != 1:
        raise ScheduleError(
            f"operation {operation.name} names {len(free)} inputs in layout_free_placeholders; one can be rewritten"
        )
    weight: Tensor = free[0] if isinstance(free[0], Tensor) else free[0].output(0)
    read = read_axes(operation, weight)
    if read is None:
        raise ScheduleError(f"operation {operation.name} reads {weight.op.name} with more than its axes")
    layout = RewrittenLayout.from_text(new_layout, [axis.var.name for axis in read])
    rewritten = placeholder(layout.shape, weight.dtype, weight.op.name)
    (made,) = reading([compute_tensor], weight, rewritten, layout)
    return made


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
