"""What a state is made of: iterators, stages, and the state itself.

All of them are immutable. A step makes a new state that shares every stage it did not touch, so that a search can hold
thousands of states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tilewright.auto_scheduler.attach_map import AttachMap
from tilewright.ir.expr import IntImm, IterVar, Range
from tilewright.support.errors import ScheduleError
from tilewright.support.node import Object
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.tensor import Operation

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.steps.base import Step


class IteratorKind(IntEnum):
    """What the iterations of an iterator are for."""

    SPATIAL = 0
    REDUCTION = 1
    MIXED = 2
    SPECIAL = 3


class IteratorAnnotation(IntEnum):
    """How the iterations of an iterator run. The numbers are those of records."""

    NONE = 0
    UNROLL = 1
    VECTORIZE = 2
    PARALLEL = 3
    VTHREAD = 4
    BLOCK_X = 5
    THREAD_X = 6
    BLOCK_Y = 7
    THREAD_Y = 8
    BLOCK_Z = 9
    THREAD_Z = 10
    TENSORIZE = 11


ANNOTATION_TEXTS: Final = (
    "for",
    "unroll",
    "vectorize",
    "parallel",
    "vthread",
    "blockIdx.x",
    "threadIdx.x",
    "blockIdx.y",
    "threadIdx.y",
    "blockIdx.z",
    "threadIdx.z",
    "tensorize",
)
"""What a state prints for each annotation; those of threads are the tags to bind to."""


class StageKind(IntEnum):
    """Whether a stage is an input or computes something."""

    PLACEHOLDER = 0
    COMPUTE = 1


class ComputeAtKind(IntEnum):
    """Where a stage is computed."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Iterator(Object):
    """A loop of a stage. ``range`` is None where it is not known before bound inference; ``orig_iters`` are those
    that a fused one was made of."""

    name: str
    range: Range | None
    iter_kind: IteratorKind = IteratorKind.SPATIAL
    annotation: IteratorAnnotation = IteratorAnnotation.NONE
    orig_iters: tuple[Iterator, ...] = ()

    @property
    def extent(self) -> int | None:
        """The number of iterations, where it is a known constant."""
        if self.range is None or not isinstance(self.range.extent, IntImm):
            return None
        return self.range.extent.value

    def __repr__(self) -> str:
        where = "None" if self.range is None else f"{self.range.min},{self.range.extent}"
        return f"{ANNOTATION_TEXTS[self.annotation]} {self.name} ({where})"


@dataclass(frozen=True, slots=True)
class StageAttributes:
    """What pragmas and alignment set for a whole stage."""

    auto_unroll_max_step: int = 0
    storage_offset: int = 0


PLAIN_ATTRIBUTES: Final = StageAttributes()


@dataclass(frozen=True, slots=True, eq=False)
class Stage(Object):
    """An operation and its loops.

    ``loop_steps`` are the splits, fusions and reorders that led to the loops, with stage 0 as their stage: what a
    factored reduction or a cache of this stage depends on.
    """

    COMPUTE_AT_TRANS_TABLE: ClassVar[dict[str, int]] = {"root": 0, "inlined": 1, "iter": 2}

    op: Operation
    op_type: StageKind
    iters: tuple[Iterator, ...]
    compute_at: ComputeAtKind = ComputeAtKind.ROOT
    attrs: StageAttributes = PLAIN_ATTRIBUTES
    loop_steps: tuple[Step, ...] = ()

    def index_of(self, iterator: Any) -> int:
        """The place of an iterator among those of this stage."""
        for position, one in enumerate(self.iters):
            if one is iterator:
                return position
        names = ", ".join(one.name for one in self.iters) or "none"
        raise ScheduleError(
            f"{getattr(iterator, 'name', iterator)!r} is not an iterator of stage {self.op.name}, whose iterators are "
            f"{names}; a step replaces the iterators it changes: use those that it returned, or state[stage].iters"
        )

    def iterator(self, iter_id: int, what: str) -> Iterator:
        """The iterator of this number."""
        if not 0 <= iter_id < len(self.iters):
            raise ScheduleError(
                f"{what}: stage {self.op.name} has {len(self.iters)} iterators, there is no number {iter_id}"
            )
        return self.iters[iter_id]


def initial_stage(operation: Operation) -> Stage:
    """The stage of an operation to which no step was applied."""
    if isinstance(operation, PlaceholderOp):
        return Stage(operation, StageKind.PLACEHOLDER, ())
    if not isinstance(operation, ComputeOp):
        raise ScheduleError(
            f"operation {operation.name} is a {type(operation).__name__}; states describe placeholders and "
            "computations (te.compute)"
        )
    return Stage(operation, StageKind.COMPUTE, tuple(_initial(axis) for axis in operation.root_iter_vars))


_KINDS: Final = {IterVar.DataPar: IteratorKind.SPATIAL, IterVar.CommReduce: IteratorKind.REDUCTION}


def _initial(axis: IterVar) -> Iterator:
    return Iterator(clean_name(axis.var.name), axis.dom, _KINDS.get(axis.iter_type, IteratorKind.SPECIAL))


def clean_name(name: str, prefix: str = "") -> str:
    """A name that Python takes; after a prefix where one is given."""
    cleaned = re.sub(r"\W", "_", name.replace("outer", "o").replace("inner", "i"))
    return f"{prefix}_{cleaned}" if prefix else cleaned


@dataclass(frozen=True, slots=True, eq=False)
class StateObject(Object):
    """The loops of a whole program, and the steps that led to them.

    ``added`` are the steps that added stages, each with the loop steps of the stage it was applied to; they determine
    the operations. ``current_compute_dag`` is the graph of these operations, None where it is the original one.
    ``concrete``: every length of a split is known.
    """

    stages: tuple[Stage, ...]
    transform_steps: tuple[Step, ...] = ()
    attach_map: AttachMap = field(default_factory=AttachMap)
    added: tuple[tuple[Step, tuple[Step, ...]], ...] = ()
    current_compute_dag: ComputeDAG | None = None
    concrete: bool = True

    def stage(self, stage_id: int, what: str) -> Stage:
        """The stage of this number."""
        if not 0 <= stage_id < len(self.stages):
            raise ScheduleError(f"{what}: there are {len(self.stages)} stages, there is no number {stage_id}")
        return self.stages[stage_id]

    def with_stage(self, stage_id: int, stage: Stage, **changes: Any) -> StateObject:
        """This state with one stage replaced."""
        stages = (*self.stages[:stage_id], stage, *self.stages[stage_id + 1 :])
        return replace(self, stages=stages, **changes)

    def apply(self, step: Step, dag: ComputeDAG) -> StateObject:
        """The state after a step."""
        made = step.apply_to_state(self, dag)
        return replace(made, transform_steps=(*self.transform_steps, step))

    def replay(self, steps: Sequence[Step], dag: ComputeDAG) -> StateObject:
        """The state after several steps; an error says which of them is wrong."""
        state = self
        for number, step in enumerate(steps):
            try:
                state = state.apply(step, dag)
            except ScheduleError as error:
                raise ScheduleError(f"step {number} ({step.as_text()}): {error.message}") from error
        return state

    def __repr__(self) -> str:
        return f"StateObject({len(self.stages)} stages, {len(self.transform_steps)} steps)"

    def __str__(self) -> str:
        return state_text(self)


def state_text(state: StateObject, delete_trivial_loop: bool = True) -> str:
    """Every stage with its loops; stages computed inside a loop stand there. Loops of one iteration are left out
    where asked."""
    inputs = [stage.op.name for stage in state.stages if stage.op_type == StageKind.PLACEHOLDER]
    lines = [f"Placeholder: {', '.join(inputs)}"]
    inside = state.attach_map.iter_to_attached_stages
    for number, stage in enumerate(state.stages):
        if stage.op_type == StageKind.COMPUTE and stage.compute_at == ComputeAtKind.ROOT:
            lines += _stage_lines(state, number, 0, inside, delete_trivial_loop)
    return "\n".join(lines) + "\n"


def _stage_lines(
    state: StateObject,
    number: int,
    indent: int,
    inside: dict[tuple[int, int], list[int]],
    delete_trivial_loop: bool,
) -> list[str]:
    stage = state.stages[number]
    name, lines = stage.op.name, []
    if stage.attrs.auto_unroll_max_step:
        lines.append(f"{' ' * indent}{name} auto_unroll: {stage.attrs.auto_unroll_max_step}")
    if stage.attrs.storage_offset:
        lines.append(f"{' ' * indent}{name} storage_offset: {stage.attrs.storage_offset}")
    for position, iterator in enumerate(stage.iters):
        if not (delete_trivial_loop and iterator.extent == 1):
            where = "None" if iterator.range is None else f"{iterator.range.min},{iterator.range.extent}"
            lines.append(f"{' ' * indent}{ANNOTATION_TEXTS[iterator.annotation]} {iterator.name} ({where})")
            indent += 2
        for held in inside.get((number, position), ()):
            lines += _stage_lines(state, held, indent, inside, delete_trivial_loop)
    return [*lines, f"{' ' * indent}{name} = ..."]
