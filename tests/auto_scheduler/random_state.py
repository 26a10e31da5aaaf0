"""Random states: steps drawn one at a time, those that the state refuses left out."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilewright.auto_scheduler import ComputeDAG, State
from tilewright.auto_scheduler.state_nodes import ComputeAtKind, StageKind
from tilewright.auto_scheduler.steps import SplitStep
from tilewright.support.errors import ScheduleError

_STEPS = (
    "split",
    "split",
    "follow",
    "follow_fused",
    "fuse",
    "reorder",
    "annotate",
    "compute_at",
    "compute_at",
    "inline",
    "root",
    "cache_read",
    "cache_write",
    "rfactor",
    "pragma",
)


class RandomState:
    """Draws the steps of one state."""

    def __init__(self, draw: Any, dag: ComputeDAG) -> None:
        self.draw = draw
        self.dag = dag
        self.state: State = dag.get_init_state()

    def build(self, steps: int) -> State:
        """A state of so many steps at most. A step that no schedule has is taken back."""
        for _ in range(steps):
            before = self.state.copy()
            try:
                getattr(self, self.draw(st.sampled_from(_STEPS)))()
                self.dag.infer_bound_from_state(self.state)
            except ScheduleError:
                self.state = before
        return self.state

    def pick(self, items: Any) -> Any:
        if not items:
            raise ScheduleError("nothing to choose from")
        return items[self.draw(st.integers(0, len(items) - 1))]

    def stage(self) -> int:
        found = [
            number
            for number, stage in enumerate(self.state.stages)
            if stage.op_type == StageKind.COMPUTE and stage.compute_at != ComputeAtKind.INLINED
        ]
        return self.pick(found)

    def loop(self) -> tuple[int, Any]:
        stage = self.stage()
        return stage, self.pick(self.state[stage].iters)

    def splits(self) -> list[int]:
        return [
            number for number, step in enumerate(self.state.transform_steps) if isinstance(step, SplitStep)
        ]

    def split(self) -> None:
        lengths = self.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
        self.state.split(*self.loop(), lengths, self.draw(st.booleans()))

    def follow(self) -> None:
        self.state.follow_split(*self.loop(), self.pick(self.splits()), self.draw(st.integers(1, 3)))

    def follow_fused(self) -> None:
        sources = [self.pick(self.splits()) for _ in range(self.draw(st.integers(1, 2)))]
        level = self.draw(st.integers(0, 1))
        self.state.follow_fused_split(*self.loop(), sources, level, self.draw(st.booleans()))

    def fuse(self) -> None:
        stage = self.stage()
        start = self.draw(st.integers(0, max(len(self.state[stage].iters) - 2, 0)))
        self.state.fuse(stage, self.state[stage].iters[start : start + 2])

    def reorder(self) -> None:
        stage = self.stage()
        self.state.reorder(stage, self.draw(st.permutations(list(self.state[stage].iters))))

    def annotate(self) -> None:
        kind = self.draw(st.sampled_from(["parallel", "unroll", "vectorize"]))
        getattr(self.state, kind)(*self.loop())

    def pragma(self) -> None:
        self.state.pragma(*self.loop(), f"auto_unroll_max_step${self.draw(st.integers(1, 16))}")

    def compute_at(self) -> None:
        self.state.compute_at(self.stage(), *self.loop())

    def inline(self) -> None:
        self.state.compute_inline(self.stage())

    def root(self) -> None:
        self.state.compute_root(self.stage())

    def cache_read(self) -> None:
        source = self.draw(st.integers(0, len(self.state.stages) - 1))
        operation = self.state.stages[source].op
        readers = [
            number
            for number, stage in enumerate(self.state.stages)
            if any(tensor.op is operation for tensor in stage.op.input_tensors)
        ]
        self.state.cache_read(source, "local", [self.pick(readers)])

    def cache_write(self) -> None:
        self.state.cache_write(self.stage(), "global")

    def rfactor(self) -> None:
        stage, loop = self.loop()
        self.state.rfactor(stage, loop, self.draw(st.integers(0, len(self.state[stage].op.axis))))
