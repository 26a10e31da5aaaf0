"""The schedule as a whole: random variables, questions, copies, errors."""

from __future__ import annotations

import pytest
from tests.tir.schedule.programs import elementwise, matmul, matmul_relu, refused, two_consumers

import tilewright as tvm
from tilewright import tir
from tilewright.support.errors import ScheduleError


def test_a_function_becomes_main() -> None:
    """A schedule of a function holds a module with that function as main."""
    function = matmul().function
    schedule = tir.Schedule(function)
    assert schedule.mod["main"] is function
    assert schedule.state.mod is schedule.mod


def test_modules_keep_their_names() -> None:
    """Functions of a module are scheduled by name."""
    module = tvm.IRModule({"first": matmul().function, "second": elementwise().function})
    schedule = tir.Schedule(module)
    i, _ = schedule.get_loops(schedule.get_block("B", func_name="second"))
    schedule.parallel(i)
    assert schedule.mod["first"] is module["first"] and schedule.mod["second"] is not module["second"]
    refused(schedule, lambda: schedule.get_block("B"), "there is no function main of blocks in the module")


def test_questions() -> None:
    """Blocks by name, loops outermost first, neighbours in the flow of data."""
    schedule = tir.Schedule(two_consumers().function)

    def names(blocks: list[tir.schedule.BlockRV]) -> list[str]:
        return [schedule.get(one).name_hint for one in blocks]

    b, c, d = (schedule.get_block(name) for name in "BCD")
    assert names(schedule.get_consumers(b)) == ["C", "D"] and names(schedule.get_producers(b)) == []
    assert names(schedule.get_producers(c)) == names(schedule.get_producers(d)) == ["B"]
    assert names(schedule.get_child_blocks(schedule.get_block("root"))) == ["B", "C", "D"]
    i, k = schedule.get_loops(d)
    assert names(schedule.get_child_blocks(i)) == names(schedule.get_child_blocks(k)) == ["D"]
    assert schedule.get_loops(schedule.get_block("root")) == []


def test_unknown_blocks() -> None:
    """The error lists what there is."""
    schedule = tir.Schedule(elementwise().function)
    refused(
        schedule,
        lambda: schedule.get_block("E"),
        "Cannot find a block with the name: E; the blocks of function main are: root, B, C, D",
    )
    with pytest.raises(ScheduleError) as found:
        tir.Schedule(elementwise().function, error_render_level="fast").get_block("E")
    assert (
        found.value.message == "get_block: Cannot find a block with the specified name, E, in function main"
    )


def test_random_variables() -> None:
    """What one stands for, as a statement, a reference or text; until it is removed."""
    schedule = tir.Schedule(matmul().function)
    block = schedule.get_block("C")
    loop = schedule.get_loops(block)[0]
    assert schedule.get(block) is schedule.get_sref(block).stmt
    assert schedule.get(schedule.get_sref(loop)) is schedule.get(loop)
    assert schedule.get_sref(schedule.get(loop)) is schedule.get_sref(loop)
    assert "for i, j, k in T.grid(12, 16, 10)" in schedule.show(loop)
    schedule.remove_rv(loop)
    refused(schedule, lambda: schedule.get(loop), "is not a block or loop of this schedule")
    refused(schedule, lambda: schedule.remove_rv(loop), "is not a random variable of this schedule")
    refused(schedule, lambda: schedule.parallel(block), "is not a loop of a schedule")
    refused(schedule, lambda: schedule.get_loops(loop), "is not a block of a schedule")


def test_copies_are_independent() -> None:
    """The same random variables, programs that go their own ways."""
    schedule = tir.Schedule(matmul_relu().function, seed=1)
    i, j, _ = schedule.get_loops(schedule.get_block("C"))
    other = schedule.copy()
    other.split(i, [None, 4])
    schedule.parallel(i)
    assert other.get(j).kind == tir.ForKind.SERIAL and schedule.get(i).kind == tir.ForKind.PARALLEL
    assert len(other.trace) == 3 and "i_0" in other.mod.script() and "i_0" not in schedule.mod.script()
    matmul_relu().check(other.mod["main"], compiled=False)


def test_error_levels() -> None:
    """With the program, with the reason alone, or with neither."""
    messages = {}
    for level in ("detail", "fast", "none"):
        schedule = tir.Schedule(matmul().function, error_render_level=level)
        k = schedule.get_loops(schedule.get_block("C"))[2]
        with pytest.raises(ScheduleError) as found:
            schedule.parallel(k)
        messages[level] = found.value.message
    assert messages["fast"] == "parallel on loop k: reduction axis v_k of block C depends on it"
    assert messages["detail"].startswith(messages["fast"] + "\n") and "T.prim_func" in messages["detail"]
    line = f"for k in T.serial(0, {schedule.get(k).extent}):"
    marked = [text.strip() for text in messages["detail"].split("\n")]
    assert marked[marked.index(line) - 1 :][:3] == ["# tir.For#0", line, "^" * len(line)]
    assert messages["none"] == "the step was refused (not rendered)"
    with pytest.raises(ScheduleError, match="error_render_level is one of detail, fast, none"):
        tir.Schedule(matmul().function, error_render_level="loud")


def test_what_cannot_be_scheduled() -> None:
    """No program, or a mask that means nothing."""
    with pytest.raises(ScheduleError, match="created from a PrimFunc or an IRModule"):
        tir.Schedule(3)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match='debug_mask is "all", "none" or a number'):
        tir.Schedule(matmul().function, debug_mask="some")


def test_seeds() -> None:
    """One seed gives one row of numbers."""
    first, second = tir.Schedule(matmul().function, seed=7), tir.Schedule(matmul().function, seed=7)
    assert first.fork_seed() == second.fork_seed()
    first.seed(9)
    second.seed(10)
    assert first.fork_seed() != second.fork_seed()
