"""Checks that a state, its schedule, its Python text and its record say the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tilewright as tvm
from tilewright import te
from tilewright.auto_scheduler import ComputeDAG, State
from tilewright.auto_scheduler.state_nodes import ANNOTATION_TEXTS, ComputeAtKind, clean_name
from tilewright.auto_scheduler.steps import steps_from_records, steps_to_records
from tilewright.compile import schedule_to_module
from tilewright.ir.expr import IterVar
from tilewright.te.schedule import infer_bound
from tilewright.te.schedule.stage import AttachType

_KINDS = {IterVar.Unrolled: "unroll", IterVar.Vectorized: "vectorize", IterVar.Parallelized: "parallel"}


def loops_of_state(state: State) -> list[Any]:
    """For each stage its place and its loops with extent and annotation."""
    found: list[Any] = []
    for number, stage in enumerate(state.stages):
        if stage.compute_at == ComputeAtKind.INLINED:
            found.append("inlined")
            continue
        place = state.attach_map.stage_to_attach_iter.get(number)
        found.append(
            (place, [(ANNOTATION_TEXTS[one.annotation], str(one.range.extent)) for one in stage.iters])
        )
    return found


def loops_of_schedule(schedule: te.Schedule, operations: Sequence[Any]) -> list[Any]:
    """The same, from a schedule; ``operations`` give the numbers of its stages."""
    normal = schedule.normalize()
    ranges = infer_bound(normal)
    stages = [schedule[operation] for operation in operations]
    places = {stage: normal.stages[schedule.stages.index(stage)] for stage in stages}
    numbers = {id(places[stage]): number for number, stage in enumerate(stages)}
    found: list[Any] = []
    for stage in stages:
        after = places[stage]
        if after.attach_type == AttachType.INLINED_ALREADY:
            found.append("inlined")
            continue
        place = None
        if after.attach_type == AttachType.SCOPE:
            inside = [axis is after.attach_ivar for axis in after.attach_stage.leaf_iter_vars]
            place = numbers[id(after.attach_stage)], inside.index(True)
        loops = []
        for axis in stage.leaf_iter_vars:
            attributes = stage.attributes(axis)
            thread = attributes.bind_thread
            kind = thread.thread_tag if thread is not None else _KINDS.get(attributes.iter_type, "for")
            loops.append((kind, str(ranges[axis].extent)))
        found.append((place, loops))
    return found


def run_python(dag: ComputeDAG, text: str) -> te.Schedule:
    """The schedule that printed Python makes."""
    schedule = te.create_schedule(dag.outputs)
    names = {clean_name(operation.name): operation.output(0) for operation in dag.ops}
    assert len(names) == len(dag.ops), "operations of one name need other variables"
    exec(text, {"s": schedule, "te": te, **names})
    return schedule


def check_agreement(dag: ComputeDAG, state: State) -> te.Schedule:
    """Everything that a state stands for is the same program; returns its schedule."""
    schedule, tensors = dag.apply_steps_from_state(state)
    bounded = dag.infer_bound_from_state(state)
    assert len(schedule.stages) == len(state.stages)

    module = schedule_to_module(schedule, tensors)
    printed = run_python(dag, dag.print_python_code_from_state(state))
    tvm.ir.assert_structural_equal(schedule_to_module(printed, tensors), module)

    replay = dag.replay(state.transform_steps)
    here = [stage.op for stage in replay.stages]
    assert [one.name for one in here] == [one.name for one in state.stage_ops]
    assert loops_of_state(bounded) == loops_of_schedule(replay.schedule, here)
    # Outputs are computed as a whole; of others, what is read.
    for before, after, stage in zip(state.stages, bounded.stages, replay.stages, strict=True):
        for one, other in zip(before.iters, after.iters, strict=True):
            if one.extent is not None and stage.is_output:
                assert one.extent == other.extent, (one, other)

    records = json.loads(json.dumps(steps_to_records(state.transform_steps)))
    again = dag.state_from_steps(steps_from_records(records))
    assert again.transform_steps == state.transform_steps
    assert str(again) == str(state)
    assert str(dag.infer_bound_from_state(again)) == str(bounded)
    return schedule
