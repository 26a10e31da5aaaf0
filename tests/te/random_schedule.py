"""Random legal schedules: steps drawn one at a time, those that the schedule refuses left out."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilewright import te
from tilewright.ir.expr import IterVar
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.stage import AttachType, Stage

_STEPS = (
    "split",
    "split",
    "nparts",
    "fuse",
    "reorder",
    "vectorize",
    "unroll",
    "parallel",
    "compute_at",
    "compute_at",
    "compute_inline",
    "cache_read",
    "cache_write",
    "rfactor",
    "double_buffer",
    "storage_align",
    "pragma",
)


class RandomSchedule:
    """Draws the steps of one schedule."""

    def __init__(self, draw: Any, program: Any) -> None:
        self.draw = draw
        outputs = program.arguments[len(program.arguments) - program.outputs :]
        operations = list(dict.fromkeys(tensor.op for tensor in outputs))
        self.schedule = te.create_schedule(operations)
        self.small: set[IterVar] = set()

    def build(self, steps: int) -> te.Schedule:
        """A schedule of so many steps, some of which may have been refused."""
        for _ in range(steps):
            step = self.draw(st.sampled_from(_STEPS))
            try:
                getattr(self, step)()
            except ScheduleError:
                continue
        return self.schedule

    def pick(self, items: list[Any]) -> Any:
        if not items:
            raise ScheduleError("nothing to choose from")
        return items[self.draw(st.integers(0, len(items) - 1))]

    def stage(self) -> Stage:
        inlined = (AttachType.INLINE, AttachType.INLINED_ALREADY)
        return self.pick(
            [
                stage
                for stage in self.schedule.stages
                if stage.leaf_iter_vars and stage.attach_type not in inlined
            ]
        )

    def split(self) -> None:
        stage = self.stage()
        factor = self.draw(st.integers(1, 8))
        _, inner = stage.split(self.pick(stage.leaf_iter_vars), factor=factor)
        self.small.add(inner)

    def nparts(self) -> None:
        stage = self.stage()
        outer, _ = stage.split(self.pick(stage.leaf_iter_vars), nparts=self.draw(st.integers(1, 5)))
        self.small.add(outer)

    def fuse(self) -> None:
        stage = self.stage()
        leaves = stage.leaf_iter_vars
        first = self.draw(st.integers(0, max(len(leaves) - 2, 0)))
        stage.fuse(*leaves[first : first + 2])

    def reorder(self) -> None:
        stage = self.stage()
        stage.reorder(*self.draw(st.permutations(list(stage.leaf_iter_vars))))

    def vectorize(self) -> None:
        stage = self.stage()
        stage.vectorize(self.pick([axis for axis in stage.leaf_iter_vars if axis in self.small]))

    def unroll(self) -> None:
        stage = self.stage()
        stage.unroll(self.pick([axis for axis in stage.leaf_iter_vars if axis in self.small]))

    def parallel(self) -> None:
        stage = self.stage()
        stage.parallel(self.pick(stage.leaf_iter_vars))

    def compute_at(self) -> None:
        stage, parent = self.stage(), self.stage()
        stage.compute_at(parent, self.pick(parent.leaf_iter_vars))

    def compute_inline(self) -> None:
        self.stage().compute_inline()

    def cache_read(self) -> None:
        stage = self.stage()
        tensor = self.pick(list(stage.op.input_tensors))
        self.schedule.cache_read(tensor, "global", [stage.op])

    def cache_write(self) -> None:
        stage = self.stage()
        self.schedule.cache_write(list(stage.op.outputs), "global")

    def rfactor(self) -> None:
        stage = self.stage()
        axis = self.pick([axis for axis in stage.leaf_iter_vars if axis.iter_type == IterVar.CommReduce])
        self.schedule.rfactor(stage.op.output(0), axis, self.draw(st.integers(0, len(stage.op.axis))))

    def double_buffer(self) -> None:
        self.stage().double_buffer()

    def storage_align(self) -> None:
        stage = self.stage()
        stage.storage_align(
            self.pick(list(stage.op.axis)), self.draw(st.sampled_from([4, 8])), self.draw(st.integers(0, 3))
        )

    def pragma(self) -> None:
        stage = self.stage()
        stage.pragma(self.pick(stage.leaf_iter_vars), "auto_unroll_max_step", 16)
