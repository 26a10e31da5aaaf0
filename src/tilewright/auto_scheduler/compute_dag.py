"""The graph of computations that a search works on, and its way between states, schedules and programs."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tilewright.auto_scheduler.access_analysis import AccessAnalyzer
from tilewright.auto_scheduler.dag_order import ordered_operations
from tilewright.auto_scheduler.dag_text import dag_text
from tilewright.auto_scheduler.flops import estimate_flops
from tilewright.auto_scheduler.layout_rewrite import (
    LayoutChange,
    LayoutRewriteOption,
    layout_changes,
    rewrite_layout,
)
from tilewright.auto_scheduler.loop_parts import read_axes
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.replay import Replay
from tilewright.auto_scheduler.state_nodes import (
    ComputeAtKind,
    Iterator,
    StateObject,
    clean_name,
    initial_stage,
)
from tilewright.auto_scheduler.steps import Step
from tilewright.auto_scheduler.tensors_json import tensors_from_json, tensors_to_json
from tilewright.auto_scheduler.workload_registry import register_workload_tensors, workload_key_to_tensors
from tilewright.ir.expr import IntImm
from tilewright.runtime.registry import get_global_func
from tilewright.support.errors import ScheduleError
from tilewright.support.node import Object
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.rewritten_layout import get_shape_from_rewritten_layout
from tilewright.te.schedule import infer_bound
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    Added = tuple[tuple[Step, tuple[Step, ...]], ...]

__all__ = ["ComputeDAG", "LayoutRewriteOption", "get_shape_from_rewritten_layout"]

HASH_FUNCTION: Final = "auto_scheduler.compute_dag.hash_func"
_KEPT_GRAPHS: Final = 256
"""How many graphs with added stages are kept; those of a factored reduction differ with every length of its split."""


class ComputeDAG(Object):
    """The operations that lead to some tensors, in a fixed order: the stages of states are numbered by it.

    It is made from a list of tensors (inputs and outputs, in the order in which the program takes them), from the key
    of a registered workload, or from a schedule, whose stages it then has.
    """

    def __init__(self, compute_or_sche: Sequence[Tensor] | str | Schedule) -> None:
        if isinstance(compute_or_sche, Schedule):
            schedule = compute_or_sche
            self.ops = [stage.op for stage in schedule.stages]
            self.tensors = [
                stage.op.output(0)
                for stage in schedule.stages
                if isinstance(stage.op, PlaceholderOp) or stage.is_output
            ]
        else:
            given = (
                workload_key_to_tensors(compute_or_sche)
                if isinstance(compute_or_sche, str)
                else compute_or_sche
            )
            if not isinstance(given, (list, tuple)) or not all(isinstance(one, Tensor) for one in given):
                raise ScheduleError(
                    "a ComputeDAG is made of a list of tensors, the key of a workload, or a schedule, "
                    f"not of {compute_or_sche!r}"
                )
            self.tensors = list(given)
            self.ops = ordered_operations(self.tensors)
        for operation in self.ops:
            _check_names(operation)
        self._grown: OrderedDict[Added, ComputeDAG] = OrderedDict()

    @classmethod
    def of_operations(cls, operations: Sequence[Operation], tensors: Sequence[Tensor]) -> ComputeDAG:
        """The graph of operations that are in order already."""
        made = cls.__new__(cls)
        made.ops, made.tensors, made._grown = list(operations), list(tensors), OrderedDict()
        return made

    # -- what is known of it --------------------------------------------------------------------------------------

    @cached_property
    def access_analyzer(self) -> AccessAnalyzer:
        """How its operations read one another."""
        return AccessAnalyzer(self.ops, self.tensors)

    @cached_property
    def flop_ct(self) -> float:
        """The number of floating-point operations; -1 if it is not known."""
        return estimate_flops(self.ops)

    @cached_property
    def init_state(self) -> StateObject:
        """The state to which no step was applied."""
        return StateObject(tuple(initial_stage(operation) for operation in self.ops))

    @property
    def outputs(self) -> list[Operation]:
        """The operations whose results the program gives."""
        return [operation for operation in self.ops if self.access_analyzer.is_output(operation)]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensors among the given ones that are computed."""
        return [tensor for tensor in self.tensors if isinstance(tensor.op, ComputeOp)]

    def get_init_state(self) -> State:
        """The state to which no step was applied, to apply steps to."""
        return State(self.init_state, self)

    def hash_key(self) -> Any:
        """A hash of the computations, not of the sizes of their inputs and outputs; by the registered function
        ``auto_scheduler.compute_dag.hash_func`` where there is one."""
        text = dag_text(self.ops, simple=True)
        own = get_global_func(HASH_FUNCTION, allow_missing=True)
        if own is not None:
            return own(text)
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    def workload_key(self) -> str:
        """The key of this graph as a workload: its hash and the shapes of its tensors."""
        shapes = [[_constant(extent) for extent in tensor.shape] for tensor in self.tensors]
        return json.dumps([self.hash_key(), *shapes])

    # -- states and steps -----------------------------------------------------------------------------------------

    def state_from_steps(self, steps: Sequence[Step]) -> State:
        """The state that steps lead to; an error says which of them is wrong."""
        return State(self.init_state.replay(steps, self), self)

    def with_added_stages(self, added: Added) -> ComputeDAG:
        """This graph after steps that add stages (see ``StateObject.added``)."""
        found = self._grown.get(added)
        if found is None:
            replay = Replay(self.ops, self.outputs, ())
            replay.run_added(added)
            found = ComputeDAG.of_operations(
                [stage.op for stage in replay.stages], self._current_tensors(replay)
            )
            self._grown[added] = found
            if len(self._grown) > _KEPT_GRAPHS:
                self._grown.popitem(last=False)
        else:
            self._grown.move_to_end(added)
        return found

    def _current_tensors(self, replay: Replay) -> list[Tensor]:
        return [replay.schedule.stage_map[tensor.op].op.output(tensor.value_index) for tensor in self.tensors]

    def _whole(self, state: State | StateObject, what: str) -> StateObject:
        """A state with its stages, which one that was read from a record lacks; ``what`` is to be had from it."""
        found = state.state_object if isinstance(state, State) else state
        if not isinstance(found, StateObject):
            raise ScheduleError(f"{state!r} is not a state")
        if not found.concrete:
            raise ScheduleError(
                f"{what} cannot be had from a sketch: the lengths of some of its splits are not known yet"
            )
        if found.stages:
            return found
        return self.init_state.replay(found.transform_steps, self)

    def replay(self, steps: Sequence[Step], text: bool = False) -> Replay:
        """The schedule after steps, with its stages numbered as those of a state are."""
        replay = Replay(self.ops, self._roots(steps), steps, text)
        replay.run()
        return replay

    def _roots(self, steps: Sequence[Step]) -> list[Operation]:
        """The outputs, without those that steps place in the loops of a reader which needs every element of them: they
        are computed there, into the program's argument."""
        outputs = self.outputs
        read = [operation for operation in outputs if self.access_analyzer.read_by[operation]]
        if not read:
            return outputs
        stages = self.init_state.replay(steps, self).stages
        inside = [stage.op for stage in stages if stage.compute_at == ComputeAtKind.ITER]
        return [
            operation
            for operation in outputs
            if operation not in read or operation not in inside or not self._is_read_whole(operation)
        ]

    def _is_read_whole(self, operation: Operation) -> bool:
        """True if all readers of an operation read each element of it where they compute their own."""
        tensor = operation.output(0)
        return all(
            read_axes(reader, tensor) == list(reader.axis)
            and [*map(_constant, reader.output(0).shape)] == [*map(_constant, tensor.shape)]
            for reader in self.access_analyzer.read_by[operation]
        )

    def apply_steps_from_state(
        self, state: State | StateObject, layout_rewrite: int = LayoutRewriteOption.NO_REWRITE
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a state, and the tensors to lower it with."""
        found = self._whole(state, "a schedule")
        dag, steps = self, found.transform_steps
        option = LayoutRewriteOption(layout_rewrite)
        if option != LayoutRewriteOption.NO_REWRITE and steps:
            dag, steps = self._rewritten(found, option)
        return dag.replay(steps).schedule, list(dag.tensors)

    def print_python_code_from_state(self, state: State | StateObject) -> str:
        """The steps of a state as Python on a schedule ``s``, with the tensors as variables named as they are."""
        found = self._whole(state, "Python code")
        replay = self.replay(found.transform_steps, text=True)
        assert replay.text is not None
        return "\n".join(replay.text.lines) + "\n"

    def infer_bound_from_state(self, state: State | StateObject) -> State:
        """A state whose iterators all have their ranges."""
        found = self._whole(state, "ranges")
        replay = self.replay(found.transform_steps)
        ranges = infer_bound(replay.schedule.normalize())
        stages = []
        for stage, scheduled in zip(found.stages, replay.stages, strict=True):
            if stage.compute_at == ComputeAtKind.INLINED or not stage.iters:
                stages.append(stage)
                continue
            iters = tuple(
                _with_range(iterator, ranges.get(axis))
                for iterator, axis in zip(stage.iters, scheduled.leaf_iter_vars, strict=True)
            )
            stages.append(replace(stage, iters=iters))
        made = State(replace(found, stages=tuple(stages)), self)
        if isinstance(state, State):
            made.stage_id_map = dict(state.stage_id_map)
        return made

    def rewrite_layout_from_state(self, state: State | StateObject) -> ComputeDAG:
        """This graph with the inputs that may have any layout (``layout_free_placeholders``) in the order in which a
        state's loops read them."""
        found = self._whole(state, "a layout")
        return self._rewritten(found, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)[0]

    def layout_changes_from_state(self, state: State | StateObject) -> list[LayoutChange]:
        """The layouts that a state's loops want for such inputs."""
        found = self._whole(state, "a layout")
        return layout_changes(self.ops, found, self.replay(found.transform_steps))

    def _rewritten(
        self, state: StateObject, option: LayoutRewriteOption
    ) -> tuple[ComputeDAG, tuple[Step, ...]]:
        operations, tensors, steps = rewrite_layout(
            self.ops, self.tensors, state, self.replay(state.transform_steps), option
        )
        return ComputeDAG.of_operations(operations, tensors), steps

    # -- text and JSON --------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The graph as JSON text, which ``from_json`` reads."""
        return tensors_to_json(self.ops, self.tensors)

    @staticmethod
    def from_json(text: str) -> ComputeDAG:
        """The graph that ``to_json`` wrote."""
        return ComputeDAG.of_operations(*tensors_from_json(text))

    def __getstate__(self) -> dict[str, Any]:
        return {"json": self.to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        made = ComputeDAG.from_json(state["json"])
        self.ops, self.tensors, self._grown = made.ops, made.tensors, OrderedDict()
        register_workload_tensors(self.workload_key(), self.tensors)

    def __str__(self) -> str:
        return dag_text(self.ops, simple=False)

    def __repr__(self) -> str:
        return f"ComputeDAG({', '.join(operation.name for operation in self.ops)})"


def _with_range(iterator: Iterator, found: Any) -> Iterator:
    return iterator if found is None else replace(iterator, range=found)


def _constant(extent: Any) -> Any:
    return extent.value if isinstance(extent, IntImm) else str(extent)


def _check_names(operation: Operation) -> None:
    """Axes of one name in one operation would make the iterators of its stage indistinguishable."""
    if not isinstance(operation, ComputeOp):
        return
    names = [clean_name(axis.var.name) for axis in operation.root_iter_vars]
    for name in names:
        if names.count(name) > 1:
            raise ScheduleError(
                f"operation {operation.name} has {names.count(name)} axes named {name}; give them different names"
            )
