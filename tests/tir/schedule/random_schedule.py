"""Random legal schedules of programs of blocks: steps drawn one at a time, those that the schedule refuses left out."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilewright import tir
from tilewright.support.errors import ScheduleError
from tilewright.tir.schedule import BlockRV, LoopRV

_STEPS = (
    "split",
    "split",
    "split",
    "fuse",
    "reorder",
    "reorder",
    "parallel",
    "vectorize",
    "unroll",
    "compute_at",
    "compute_at",
    "reverse_compute_at",
    "reverse_compute_at",
    "compute_inline",
    "reverse_compute_inline",
)


class RandomSchedule:
    """Draws the steps of one schedule."""

    def __init__(self, draw: Any, function: tir.PrimFunc) -> None:
        self.draw = draw
        self.schedule = tir.Schedule(function, debug_mask="all", error_render_level="fast")

    def build(self, steps: int) -> tir.Schedule:
        """A schedule of so many steps, some of which may have been refused."""
        for _ in range(steps):
            step = self.draw(st.sampled_from(_STEPS))
            before = self.schedule.mod
            try:
                getattr(self, step)()
            except ScheduleError:
                assert self.schedule.mod is before
        return self.schedule

    def pick(self, items: list[Any]) -> Any:
        if not items:
            raise ScheduleError("nothing to choose from")
        return items[self.draw(st.integers(0, len(items) - 1))]

    def block(self) -> BlockRV:
        return self.pick(self.schedule.get_child_blocks(self.schedule.get_block("root")))

    def loop(self) -> LoopRV:
        return self.pick(self.schedule.get_loops(self.block()))

    def split(self) -> None:
        factor = self.draw(st.integers(1, 6))
        self.schedule.split(self.loop(), self.draw(st.sampled_from([[None, factor], [factor, None]])))

    def fuse(self) -> None:
        loops = self.schedule.get_loops(self.block())
        first = self.draw(st.integers(0, max(len(loops) - 2, 0)))
        self.schedule.fuse(*loops[first : first + 2])

    def reorder(self) -> None:
        loops = self.schedule.get_loops(self.block())
        first = self.draw(st.integers(0, len(loops)))
        self.schedule.reorder(*self.draw(st.permutations(loops[first:])))

    def parallel(self) -> None:
        self.schedule.parallel(self.loop())

    def vectorize(self) -> None:
        self.schedule.vectorize(self.loop())

    def unroll(self) -> None:
        self.schedule.unroll(self.loop())

    def compute_at(self) -> None:
        self.schedule.compute_at(self.block(), self.loop(), self.draw(st.booleans()))

    def reverse_compute_at(self) -> None:
        self.schedule.reverse_compute_at(self.block(), self.loop(), self.draw(st.booleans()))

    def compute_inline(self) -> None:
        self.schedule.compute_inline(self.block())

    def reverse_compute_inline(self) -> None:
        self.schedule.reverse_compute_inline(self.block())
