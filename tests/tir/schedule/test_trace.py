"""The trace prints, is written and read, and replays."""

from __future__ import annotations

import json

import pytest
from tests.tir.schedule.programs import elementwise, matmul

import tilewright as tvm
from tilewright import tir
from tilewright.support.errors import ScheduleError
from tilewright.tir.schedule import Trace


def tiled() -> tir.Schedule:
    """A product with some steps."""
    schedule = tir.Schedule(matmul().function)
    block = schedule.get_block("C")
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, 4])
    schedule.reorder(i0, j, k, i1)
    schedule.get_child_blocks(k)
    schedule.enter_postproc()
    schedule.parallel(i0)
    return schedule


def test_python() -> None:
    """The trace is the script that makes the schedule."""
    schedule = tiled()
    assert schedule.trace.as_python() == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        "l4, l5 = sch.split(loop=l1, factors=[None, 4])",
        "sch.reorder(l4, l2, l3, l5)",
        "b6, = sch.get_child_blocks(block_or_loop=l3)",
        "sch.enter_postproc()",
        "sch.parallel(loop=l4)",
    ]
    assert len(schedule.trace.as_python(remove_postproc=True)) == 5
    again = tir.Schedule(matmul().function)
    exec(str(schedule.trace), {"sch": again})
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)


def test_replay() -> None:
    """The same steps on another schedule give the same program; without those after ``enter_postproc`` if wanted."""
    schedule = tiled()
    again = tir.Schedule(matmul().function)
    schedule.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)
    assert str(again.trace) == str(schedule.trace)
    part = tir.Schedule(matmul().function)
    schedule.trace.apply_to_schedule(part, remove_postproc=True)
    assert "T.parallel" not in part.mod.script() and len(part.trace) == 5


def test_json() -> None:
    """What JSON holds replays to the same program."""
    schedule = tiled()
    written = json.loads(json.dumps(schedule.trace.as_json()))
    assert written[0][2] == ["Split", ["l1", None, 4], [], ["l4", "l5"]] and written[1] == []
    again = tir.Schedule(matmul().function)
    Trace.apply_json_to_schedule(written, again)
    tvm.ir.assert_structural_equal(again.mod, schedule.mod)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ([], "this is not what Trace.as_json gives"),
        ([[["Nothing", [], [], []]], []], "'Nothing' is not a kind of instruction"),
        ([[["GetLoops", ["b0"], [], []]], []], r"step 0 \(GetLoops\) uses b0, which no step before it gave"),
        ([[["GetBlock", [], ["C"], ["b0"]]], []], "GetBlock takes 0 inputs and 2 attributes, not 0 and 1"),
        ([[["GetBlock", [], ["C", "main"], []]], []], "GetBlock gave 1 results where the trace has 0"),
    ],
)
def test_json_that_is_wrong(written: object, message: str) -> None:
    """Says what is wrong with it."""
    with pytest.raises(ScheduleError, match=message):
        Trace.apply_json_to_schedule(written, tir.Schedule(matmul().function))


def test_simplified() -> None:
    """Questions whose answers nobody uses are left out."""
    text = tiled().trace.simplified(remove_postproc=True).as_python()
    assert len(text) == 4 and not any("get_child_blocks" in line for line in text)


def test_another_program() -> None:
    """A trace of a program with other loops is refused."""
    with pytest.raises(ScheduleError, match="GetLoops gave 2 results where the trace has 3"):
        tiled().trace.apply_to_schedule(tir.Schedule(elementwise().function), remove_postproc=False)


def test_pop() -> None:
    """The last step is taken away."""
    trace = tiled().trace
    last = trace.pop()
    assert last is not None and last.kind.name == "Parallel" and len(trace) == 6
    assert Trace([], {}).pop() is None
