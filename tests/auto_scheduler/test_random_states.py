"""Whatever the steps, a state, its schedule, its text and its record are the same program, and compute what it says."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from tests.auto_scheduler.agreement import check_agreement
from tests.auto_scheduler.random_state import RandomState
from tests.te.programs import PROGRAMS
from tests.te.random_schedule import RandomSchedule

import tilewright as tvm
from tilewright.auto_scheduler import ComputeDAG, State
from tilewright.auto_scheduler.from_schedule import untranslated
from tilewright.compile import schedule_to_module
from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.tir.interpreter import interpret

SCALE = int(os.environ.get("TILEWRIGHT_ORACLE_SCALE", "1"))


REFUSED = (
    "no step for",
    "annotated already",
    "whose loops this step replaces",
    "is computed between",
    "is computed inside",
)
"""Why a schedule may have no state."""


def has_only_computations(make: Any) -> bool:
    operations, pending = [], [tensor.op for tensor in make().arguments if hasattr(tensor, "op")]
    while pending:
        operations.append(pending.pop())
        pending += [tensor.op for tensor in operations[-1].input_tensors]
    return all(isinstance(operation, (ComputeOp, PlaceholderOp)) for operation in operations)


USED = [make for make in PROGRAMS if has_only_computations(make)]


def oracle(examples: int) -> Any:
    """Settings for a search that takes its time; the default one tries the same states each time."""
    return settings(
        max_examples=examples * SCALE,
        deadline=None,
        derandomize=SCALE == 1,
        phases=[Phase.generate] if SCALE == 1 else list(Phase),
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("make", USED, ids=lambda make: make.__name__)
@oracle(12)
@given(data=st.data())
def test_random_states_agree_and_compute_the_program(make: Any, data: Any) -> None:
    program = make()
    dag = ComputeDAG(program.arguments)
    state = RandomState(data.draw, dag).build(data.draw(st.integers(1, 10)))
    note("\n".join(step.as_text() for step in state.transform_steps))
    schedule = check_agreement(dag, state)
    arrays = program.arrays(5)
    interpret(schedule_to_module(schedule, dag.tensors)["main"], *arrays)
    program.check(arrays)


@pytest.mark.parametrize("make", USED, ids=lambda make: make.__name__)
@oracle(2)
@given(data=st.data())
def test_random_states_compile(make: Any, data: Any) -> None:
    program = make()
    dag = ComputeDAG(program.arguments)
    state = RandomState(data.draw, dag).build(data.draw(st.integers(1, 10)))
    note("\n".join(step.as_text() for step in state.transform_steps))
    schedule, tensors = dag.apply_steps_from_state(state)
    arrays = program.arrays(6)
    tvm.build(schedule, tensors, "llvm")(*arrays)
    program.check(arrays)


@pytest.mark.parametrize("make", USED, ids=lambda make: make.__name__)
@oracle(12)
@given(data=st.data())
def test_schedules_become_states_with_the_same_loops(make: Any, data: Any) -> None:
    """A schedule is its state's, or its trace has something for which there is no step."""
    program = make()
    schedule = RandomSchedule(data.draw, program).build(data.draw(st.integers(1, 8)))
    note(str(schedule.trace))
    dag = ComputeDAG(program.arguments)
    try:
        module = schedule_to_module(schedule, program.arguments)
    except ScheduleError:
        return
    state = State.from_schedule(schedule, dag)
    if state is None:
        reason = untranslated(schedule, dag)
        assert reason is not None
        note(reason)
        assert any(word in reason for word in REFUSED), reason
        return
    again, tensors = dag.apply_steps_from_state(state)
    tvm.ir.assert_structural_equal(schedule_to_module(again, tensors), module)
