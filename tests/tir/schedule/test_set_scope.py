"""Other memory for allocated buffers."""

from __future__ import annotations

from tests.tir.schedule.programs import elementwise, refused

from tilewright import tir


def test_a_buffer_in_other_memory() -> None:
    """The allocation and every use are of the new buffer; what is computed stays. Its name names the buffer, too."""
    program = elementwise(12, 10)
    for index in (0, "B"):
        schedule = tir.Schedule(program.function, debug_mask="all")
        schedule.set_scope("B", index, "local")
        assert (
            schedule.trace.as_python()[-1] == 'sch.set_scope(block=b0, buffer_index=0, storage_scope="local")'
        )
        block = schedule.get(schedule.get_block("B"))
        assert [buffer.scope() for buffer in (block.writes[0].buffer, block.body.buffer)] == ["local"] * 2
        program.check(schedule.mod["main"])
    schedule.set_scope("B", 0, "global")
    program.check(schedule.mod["main"])


def test_refuses() -> None:
    """Memory of the caller, buffers that the block does not write, and memory that other threads do not see."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    refused(schedule, lambda: schedule.set_scope("D", 0, "local"), "D is an input or output: its memory is")
    refused(
        schedule, lambda: schedule.set_scope("B", "A", "local"), "does not write one buffer 'A'; it writes B"
    )
    refused(schedule, lambda: schedule.set_scope("B", 3, "local"), "3 is the number of none of them")
