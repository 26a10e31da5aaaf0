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
    "cache_read",
    "cache_write",
    "decompose_reduction",
    "decompose_reduction",
    "rfactor",
    "storage_align",
    "sample",
)


class RandomSchedule:
    """Draws the steps of one schedule."""

    def __init__(self, draw: Any, function: tir.PrimFunc) -> None:
        self.draw = draw
        self.schedule = tir.Schedule(function, seed=1, debug_mask="all", error_render_level="fast")

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

    def short_loop(self) -> LoopRV:
        """A loop that may be written out: code for all its iterations is compiled."""
        loop = self.loop()
        extent = self.schedule.get(loop).extent
        if not isinstance(extent, tir.IntImm) or extent.value > 6:
            raise ScheduleError("too long to be written out")
        return loop

    def vectorize(self) -> None:
        self.schedule.vectorize(self.short_loop())

    def unroll(self) -> None:
        self.schedule.unroll(self.short_loop())

    def compute_at(self) -> None:
        block = self.block()
        loop = self.pick(self.schedule.get_loops(self.pick(self.schedule.get_consumers(block))))
        self.schedule.compute_at(block, loop, self.draw(st.booleans()))

    def reverse_compute_at(self) -> None:
        block = self.block()
        loop = self.pick(self.schedule.get_loops(self.pick(self.schedule.get_producers(block))))
        self.schedule.reverse_compute_at(block, loop, self.draw(st.booleans()))

    def cache_read(self) -> None:
        self.schedule.cache_read(self.block(), self.draw(st.integers(0, 1)), "global")

    def cache_write(self) -> None:
        self.schedule.cache_write(self.block(), 0, "global")

    def decompose_reduction(self) -> None:
        block = self.block()
        self.schedule.decompose_reduction(block, self.pick(self.schedule.get_loops(block)))

    def rfactor(self) -> None:
        self.schedule.rfactor(self.loop(), self.draw(st.integers(-2, 2)))

    def storage_align(self) -> None:
        self.schedule.storage_align(
            self.block(), 0, self.draw(st.integers(0, 1)), 8, self.draw(st.integers(0, 7))
        )

    def sample(self) -> None:
        loop = self.loop()
        self.schedule.split(loop, self.schedule.sample_perfect_tile(loop, n=2, max_innermost_factor=4))

    def compute_inline(self) -> None:
        self.schedule.compute_inline(self.block())

    def reverse_compute_inline(self) -> None:
        self.schedule.reverse_compute_inline(self.block())
