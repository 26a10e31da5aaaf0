"""States: a program's loops as a search sees them, and the steps that change them.

    dag = auto_scheduler.ComputeDAG([A, B, C])
    state = dag.get_init_state()
    i0, i1 = state.split(C, state[C].iters[0], [16])
    state.parallel(C, i0)
    schedule, tensors = dag.apply_steps_from_state(state)

A ``State`` holds a ``StateObject``, which never changes: a step puts another one in its place, and a copy shares it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.auto_scheduler.from_schedule import steps_of_schedule
from tilewright.auto_scheduler.state_nodes import (
    ANNOTATION_TEXTS,
    Iterator,
    IteratorAnnotation,
    Stage,
    StateObject,
)
from tilewright.auto_scheduler.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    Step,
    StorageAlignStep,
)
from tilewright.ir.expr import IntImm
from tilewright.support.errors import ScheduleError
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from tilewright.auto_scheduler.compute_dag import ComputeDAG

__all__ = ["Iterator", "Stage", "State", "StateObject"]

StageLike = Tensor | Operation | int


class State:
    """The loops of a program. Stages are named by their tensors, operations or numbers, iterators by what ``stages``
    or an earlier step gave."""

    ANNOTATION_TRANS_TABLE: ClassVar[dict[str, int]] = {
        "none": 0,
        **{text: number for number, text in enumerate(ANNOTATION_TEXTS) if number},
    }

    __slots__ = ("compute_dag", "stage_id_map", "state_object")

    def __init__(self, state_object: StateObject, dag: ComputeDAG) -> None:
        self.state_object = state_object
        self.compute_dag = dag
        self.stage_id_map: dict[Operation, int] = {}
        self._update_stage_id_map()

    @staticmethod
    def from_schedule(schedule: Schedule, dag: ComputeDAG) -> State | None:
        """The state of a schedule of the same operations, by its trace; None if the trace has something for which
        there is no step (``from_schedule.untranslated`` says what)."""
        steps = steps_of_schedule(schedule, dag)
        return None if steps is None else dag.state_from_steps(steps)

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages with their loops."""
        return self.state_object.stages

    @property
    def transform_steps(self) -> tuple[Step, ...]:
        """The steps so far."""
        return self.state_object.transform_steps

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.op for stage in self.stages]

    @property
    def attach_map(self) -> Any:
        """Which stages are computed in which loops."""
        return self.state_object.attach_map

    @property
    def concrete(self) -> bool:
        """True if the lengths of all splits are known."""
        return self.state_object.concrete

    # -- loops ----------------------------------------------------------------------------------------------------

    def bind(self, stage: StageLike, iterator: Iterator, thread_name: str) -> Iterator:
        """Run a loop on threads: ``blockIdx.x``, ``threadIdx.y``, ``vthread``, ..."""
        annotation = self.ANNOTATION_TRANS_TABLE.get(thread_name, 0)
        if not IteratorAnnotation.VTHREAD <= annotation <= IteratorAnnotation.THREAD_Z:
            names = ", ".join(ANNOTATION_TEXTS[IteratorAnnotation.VTHREAD : IteratorAnnotation.TENSORIZE])
            raise ScheduleError(f"bind: {thread_name!r} is not a thread; those are {names}")
        return self._annotate(stage, iterator, annotation)

    def parallel(self, stage: StageLike, iterator: Iterator) -> Iterator:
        """Run the iterations of a loop at the same time."""
        return self._annotate(stage, iterator, IteratorAnnotation.PARALLEL)

    def vectorize(self, stage: StageLike, iterator: Iterator) -> Iterator:
        """Make the iterations of a loop the lanes of vectors."""
        return self._annotate(stage, iterator, IteratorAnnotation.VECTORIZE)

    def unroll(self, stage: StageLike, iterator: Iterator, max_unroll: int | None = None) -> Iterator:
        """Write the iterations of a loop out, unless there are more than ``max_unroll``."""
        extent = iterator.extent
        if max_unroll is not None and max_unroll >= 0 and extent is not None and extent > max_unroll:
            return iterator
        return self._annotate(stage, iterator, IteratorAnnotation.UNROLL)

    def _annotate(self, stage: StageLike, iterator: Iterator, annotation: int) -> Iterator:
        stage_id, iter_id = self._place(stage, iterator)
        self._apply(AnnotationStep(stage_id, iter_id, int(annotation)))
        return self.stages[stage_id].iters[iter_id]

    def fuse(self, stage: StageLike, iters: Sequence[Iterator]) -> Iterator:
        """Make one loop of consecutive ones, outermost first; of none, a loop of one iteration."""
        stage_id = self._resolve_stage_id(stage)
        ids = tuple(self.stages[stage_id].index_of(iterator) for iterator in iters)
        self._apply(FuseStep(stage_id, ids))
        return self.stages[stage_id].iters[ids[0] if ids else 0]

    def pragma(self, stage: StageLike, iterator: Iterator, pragma_type: str) -> None:
        """Attach a hint to a loop: ``auto_unroll_max_step$64``, ``tensor_core``, ..."""
        self._apply(PragmaStep(*self._place(stage, iterator), pragma_type))

    def reorder(self, stage: StageLike, order: Sequence[Iterator]) -> None:
        """Put all loops of a stage in this order."""
        stage_id = self._resolve_stage_id(stage)
        self._apply(ReorderStep(stage_id, tuple(self.stages[stage_id].index_of(one) for one in order)))

    def split(
        self,
        stage: StageLike,
        iterator: Iterator,
        lengths: Sequence[int | None],
        inner_to_outer: bool = True,
    ) -> list[Iterator]:
        """Split a loop: the lengths are those of the inner loops, or of the outer ones. A length of None is open."""
        stage_id, iter_id = self._place(stage, iterator)
        wanted = tuple(_length(length) for length in lengths)
        self._apply(SplitStep(stage_id, iter_id, iterator.extent, wanted, bool(inner_to_outer)))
        return list(self.stages[stage_id].iters[iter_id : iter_id + len(wanted) + 1])

    def follow_split(
        self, stage: StageLike, iterator: Iterator, src_step_id: int, n_split: int
    ) -> list[Iterator]:
        """Split a loop as an earlier step split another, into ``n_split + 1`` loops."""
        stage_id, iter_id = self._place(stage, iterator)
        self._apply(FollowSplitStep(stage_id, iter_id, int(src_step_id), int(n_split)))
        return list(self.stages[stage_id].iters[iter_id : iter_id + n_split + 1])

    def follow_fused_split(
        self,
        stage: StageLike,
        iterator: Iterator,
        src_step_ids: Sequence[int],
        level: int,
        factor_or_nparts: bool,
    ) -> list[Iterator]:
        """Split a loop by the product of what earlier splits have at one level, as a factor or as a number of parts."""
        stage_id, iter_id = self._place(stage, iterator)
        sources = tuple(int(number) for number in src_step_ids)
        self._apply(FollowFusedSplitStep(stage_id, iter_id, sources, int(level), bool(factor_or_nparts)))
        return list(self.stages[stage_id].iters[iter_id : iter_id + 2])

    def storage_align(self, stage: StageLike, iterator: Iterator, factor: int, offset: int) -> None:
        """Make the stride of an axis a multiple of ``factor`` plus ``offset``."""
        self._apply(StorageAlignStep(*self._place(stage, iterator), int(factor), int(offset)))

    # -- places and new stages ------------------------------------------------------------------------------------

    def compute_at(self, stage: StageLike, target_stage: StageLike, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of another."""
        target_id, iter_id = self._place(target_stage, target_iter)
        self._apply(ComputeAtStep(self._resolve_stage_id(stage), target_id, iter_id))

    def compute_inline(self, stage: StageLike) -> None:
        """Put the expression of a stage wherever it is read."""
        self._apply(ComputeInlineStep(self._resolve_stage_id(stage)))

    def compute_root(self, stage: StageLike) -> None:
        """Compute the whole of a stage before its readers."""
        self._apply(ComputeRootStep(self._resolve_stage_id(stage)))

    def cache_read(self, stage: StageLike, scope_name: str, reader_stages: Sequence[StageLike]) -> Operation:
        """A copy of a stage's result in another memory, for some readers; returns the operation that copies."""
        readers = tuple(self._resolve_stage_id(reader) for reader in reader_stages)
        stage_id = self._resolve_stage_id(stage)
        self._apply(CacheReadStep(stage_id, scope_name, readers))
        return self._insert_new_stage(stage_id + 1)

    def cache_write(self, stage: StageLike, scope_name: str) -> Operation:
        """Compute a stage in another memory and copy the result; returns the operation that computes."""
        stage_id = self._resolve_stage_id(stage)
        self._apply(CacheWriteStep(stage_id, scope_name))
        return self._insert_new_stage(stage_id)

    def rfactor(self, stage: StageLike, iterator: Iterator, factor_iter_id: int) -> Operation:
        """Reduce over all loops but one first; returns the operation that does. Its new axis is the dimension
        ``factor_iter_id``."""
        stage_id, iter_id = self._place(stage, iterator)
        self._apply(RfactorStep(stage_id, iter_id, int(factor_iter_id)))
        return self._insert_new_stage(stage_id)

    # -- how it is kept -------------------------------------------------------------------------------------------

    def copy(self) -> State:
        """A copy that steps can be applied to without changing this one. It shares everything else."""
        made = object.__new__(State)
        made.state_object = self.state_object
        made.compute_dag = self.compute_dag
        made.stage_id_map = self.stage_id_map
        return made

    def apply_step(self, step: Step) -> None:
        """Apply a step that was made before."""
        before = len(self.stages)
        self._apply(step)
        if len(self.stages) > before:
            self._insert_new_stage(step.stage_id + (1 if isinstance(step, CacheReadStep) else 0))

    def _apply(self, step: Step) -> None:
        self.state_object = self.state_object.apply(step, self.compute_dag)

    def _place(self, stage: StageLike, iterator: Iterator) -> tuple[int, int]:
        stage_id = self._resolve_stage_id(stage)
        return stage_id, self.stages[stage_id].index_of(iterator)

    def _resolve_stage_id(self, stage_id: StageLike) -> int:
        if isinstance(stage_id, int):
            self.state_object.stage(stage_id, "stage")
            return stage_id
        operation = stage_id.op if isinstance(stage_id, Tensor) else stage_id
        found = self.stage_id_map.get(operation) if isinstance(operation, Operation) else None
        if found is None:
            names = ", ".join(stage.op.name for stage in self.stages)
            raise ScheduleError(f"{stage_id!r} is not a stage of this state, whose stages are {names}")
        return found

    def _update_stage_id_map(self) -> None:
        # Copies share the map, so that it is never changed in place.
        self.stage_id_map = {
            **self.stage_id_map,
            **{stage.op: number for number, stage in enumerate(self.stages)},
        }

    def _insert_new_stage(self, position: int) -> Operation:
        """Renumber the stages after a new one; operations from before a step still name their stages."""
        self.stage_id_map = {
            operation: number + 1 if number >= position else number
            for operation, number in self.stage_id_map.items()
        }
        self._update_stage_id_map()
        return self.stages[position].op

    def __getitem__(self, key: StageLike) -> Stage:
        return self.stages[self._resolve_stage_id(key)]

    def __str__(self) -> str:
        return str(self.state_object)

    def __repr__(self) -> str:
        return str(self.state_object)

    def __eq__(self, other: object) -> bool:
        """True if the programs read the same, however they were reached."""
        return isinstance(other, State) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # steps change a state in place


def _length(given: Any) -> int | None:
    if isinstance(given, IntImm):
        return given.value
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    raise ScheduleError(f"split: {given!r} is not a length")
