"""Where schedules that a search found come from while a model is compiled.

    with auto_scheduler.ApplyHistoryBest("tuning.json"):
        with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
            lib = relay.build(mod, target, params=params)

A record that was slower than the constructed schedule in its own search is not used.
"""

from __future__ import annotations

import logging
import math
import tempfile
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.cost_model import RandomModel, XGBModel
from tilewright.auto_scheduler.layout_rewrite import LayoutRewriteOption
from tilewright.auto_scheduler.measure_record import RecordToFile
from tilewright.auto_scheduler.measure_types import MeasureErrorNo
from tilewright.auto_scheduler.search_policy import SketchPolicy
from tilewright.auto_scheduler.search_task import SearchTask
from tilewright.auto_scheduler.tuning_options import TuningOptions
from tilewright.auto_scheduler.untuned import Comparison, key_of, read_comparisons
from tilewright.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key
from tilewright.relay.op.rewritten_weight import WEIGHT
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target, TargetLike
from tilewright.te.operation import ComputeOp
from tilewright.te.rewritten_layout import RewrittenLayout
from tilewright.te.schedule.schedule import Schedule

logger = logging.getLogger("auto_scheduler")


class DispatchContext(TuningScope):
    """Answers which state a workload has. Contexts nest; the innermost that has an answer gives it."""

    current: ClassVar[DispatchContext | None] = None
    lays_out_weights: ClassVar[bool] = True

    def __init__(self) -> None:
        self._outer: list[DispatchContext | None] = []
        self._of_rewritten: dict[tuple[str, str], Any] = {}

    def query(
        self, target: TargetLike, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Any:
        """The state of a workload: this context's, or that of one around it; None if there is none."""
        found = self._query_inside(Target(target), workload_key, func_name)
        if found is None and self._outer and self._outer[-1] is not None:
            found = self._outer[-1].query(target, workload_key, has_complex_op, dag, func_name)
        return found

    @abstractmethod
    def _query_inside(self, target: Target, workload_key: str, func_name: str) -> Any:
        """The state that this context itself has."""

    def update(self, target: TargetLike, workload_key: str, state: Any) -> None:
        """Use a state for a workload from now on."""
        raise TilewrightError(f"{type(self).__name__} cannot be given states")

    def layout_option(self, target: TargetLike, workload_key: str) -> LayoutRewriteOption:
        """What happens to the weights of a workload: as when its record was measured; by default what pays on the
        target."""
        found = self._option_inside(Target(target), workload_key)
        if found is not None:
            return found
        if self._outer and self._outer[-1] is not None:
            return self._outer[-1].layout_option(target, workload_key)
        return LayoutRewriteOption.get_target_default(target, in_relay_integration=True)

    def _option_inside(self, target: Target, workload_key: str) -> LayoutRewriteOption | None:
        """The option of the record that this context itself has."""
        return None

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The schedule of a fused function; None where no record of its computation fits."""
        dag, key = _graph_and_key(request)
        if dag is None:
            return None
        state = self._of_rewritten.get((key, request.target.kind.name))
        if state is None:
            state = self.query(request.target, key, has_reduction(dag), dag, request.operator)
        if state is None:
            return None
        try:
            schedule, _ = dag.apply_steps_from_state(state)
        except TilewrightError as error:
            _does_not_fit(request, error)
            return None
        return schedule

    def weight_layout(self, request: ScheduleRequest) -> RewrittenLayout | None:
        """The layout in which a state's loops read the weight of a fused function. The function with its weight
        rewritten has another key, which the state is then known by as well."""
        dag, key = _graph_and_key(request)
        if dag is None or len(request.inputs) <= WEIGHT:
            return None
        state = self.query(request.target, key, has_reduction(dag), dag, request.operator)
        if state is None or self.layout_option(request.target, key) == LayoutRewriteOption.NO_REWRITE:
            return None
        try:
            changes = dag.layout_changes_from_state(state)
            if len(changes) != 1 or changes[0].placeholder is not request.inputs[WEIGHT]:
                return None
            rewritten = dag.rewrite_layout_from_state(state)
        except TilewrightError as error:
            _does_not_fit(request, error)
            return None
        self._of_rewritten[rewritten.workload_key(), request.target.kind.name] = state
        return changes[0].layout

    def __enter__(self) -> Self:
        self._outer.append(DispatchContext.current)
        DispatchContext.current = self
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        DispatchContext.current = self._outer.pop()
        super().__exit__(*raised)


def _graph_and_key(request: ScheduleRequest) -> tuple[ComputeDAG | None, str]:
    """The graph of a fused function and its key; no graph where sizes are not known, or where operations are no
    computations."""
    try:
        dag = ComputeDAG(list(request.arguments))
        return dag, dag.workload_key()
    except TilewrightError:
        return None, ""


def _does_not_fit(request: ScheduleRequest, error: TilewrightError) -> None:
    logger.warning("%s: its record does not fit and is not used: %s", request.operator, error.message)


def has_reduction(dag: ComputeDAG) -> bool:
    """True if a graph has more than operations on single elements."""
    return any(isinstance(operation, ComputeOp) and operation.reduce_axis for operation in dag.ops)


Records = str | Path | Iterable[Any] | None


class ApplyHistoryBest(DispatchContext):
    """The best records of files, or of pairs of inputs and results. With ``include_compatible``, a workload without a
    record of its own takes the schedule of a smaller one of the same computation, where it fits."""

    def __init__(
        self, records: Records = None, n_lines: int | None = None, include_compatible: bool = False
    ) -> None:
        super().__init__()
        self.include_compatible = include_compatible
        self.best: dict[tuple[str, str], Comparison] = {}
        self.given: dict[tuple[str, str], Any] = {}
        self.slower = 0
        self.load(records, n_lines)

    def load(self, records: Records, n_lines: int | None = None) -> None:
        """Add records: the name of a file or of several, an open file, or pairs of inputs and results."""
        if records is None:
            return
        if isinstance(records, (str, Path)):
            self._add(read_comparisons(records, n_lines))
        elif hasattr(records, "name") and hasattr(records, "read"):
            self._add(read_comparisons(records.name, n_lines))
        else:
            for one in records:
                if isinstance(one, (str, Path)):
                    self._add(read_comparisons(one, n_lines))
                else:
                    measured, result = one
                    if result.error_no == MeasureErrorNo.NO_ERROR:
                        self._add([Comparison(measured, result.mean, math.inf)])

    def _add(self, found: Iterable[Comparison]) -> None:
        for one in found:
            if not one.is_faster:
                self.slower += 1
                continue
            key = key_of(one.measured.task)
            if key not in self.best or one.cost < self.best[key].cost:
                self.best[key] = one

    @staticmethod
    def get_workload_entry(
        best_records: Any, target_key: str, workload_key: str
    ) -> tuple[dict[Any, Any], str, tuple[Any, ...] | None]:
        """The part of a nested table for a target and a workload, and the name and arguments of the workload."""
        name, arguments = decode_workload_key(workload_key)
        return best_records.setdefault(target_key, {}).setdefault(name, {}), name, arguments

    def _query_inside(self, target: Target, workload_key: str, func_name: str) -> Any:
        key = (workload_key, target.kind.name)
        if key in self.given:
            return self.given[key]
        found = self.best.get(key)
        if found is None and self.include_compatible:
            found = self._compatible(target, workload_key)
        return None if found is None else found.measured.state

    def _option_inside(self, target: Target, workload_key: str) -> LayoutRewriteOption | None:
        key = (workload_key, target.kind.name)
        found = None if key in self.given else self.best.get(key)
        return None if found is None else LayoutRewriteOption(found.measured.task.layout_rewrite_option)

    def _compatible(self, target: Target, workload_key: str) -> Comparison | None:
        wanted = decode_workload_key(workload_key)
        best, lowest = None, math.inf
        for (other, kind), one in self.best.items():
            if kind == target.kind.name:
                cost = one.cost * calc_workload_dis_factor(wanted, decode_workload_key(other))
                if cost < lowest:
                    best, lowest = one, cost
        return best

    def update(self, target: TargetLike, workload_key: str, state: Any) -> None:
        """Use a state for a workload from now on."""
        self.given[workload_key, Target(target).kind.name] = state


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """The best records; where there is none, a schedule is searched for while the model is compiled.

    ``num_measure`` candidates are measured for each such function; with 1 or fewer, the best by the cost model is taken
    unmeasured. ``sample_simple_workloads`` does it for functions without reductions, too.
    """

    def __init__(
        self,
        records: Records,
        sample_simple_workloads: bool = False,
        cost_model_file: str | None = None,
        num_measure: int = -1,
    ) -> None:
        self.sample_simple_workloads = sample_simple_workloads
        self.num_measure = num_measure
        if cost_model_file is None:
            self.cost_model: Any = RandomModel()
        else:
            self.cost_model = XGBModel()
            self.cost_model.load(cost_model_file)
        super().__init__(records, include_compatible=True)

    def query(
        self, target: TargetLike, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Any:
        """The best record of a workload, or what a short search finds."""
        found = self._query_inside(Target(target), workload_key, func_name)
        if found is not None or not (has_complex_op or self.sample_simple_workloads):
            return found
        task = SearchTask(compute_dag=dag, workload_key=workload_key, target=target, layout_rewrite_option=0)
        policy = SketchPolicy(task, self.cost_model, verbose=0)
        if self.num_measure > 1:
            with tempfile.TemporaryDirectory(prefix="tilewright-sample-") as folder:
                path = Path(folder) / "records.json"
                options = TuningOptions(
                    num_measure_trials=self.num_measure,
                    num_measures_per_round=self.num_measure,
                    verbose=0,
                    measure_callbacks=[RecordToFile(path)],
                )
                task.tune(options, policy)
                self.load(path)
            return self._query_inside(Target(target), workload_key, func_name)
        state = policy.search(1, -1, 1, TuningOptions().measurer())
        self.update(target, workload_key, state)
        return state


class FallbackContext(DispatchContext):
    """Has no states; says once for each workload that there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, str], Any] = {}
        self.verbose = 1
        self.messages: set[str] = set()

    def query(
        self, target: TargetLike, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Any:
        """What was given by ``update``; None otherwise."""
        found = self._query_inside(Target(target), workload_key, func_name)
        if found is None and self.verbose and has_complex_op and workload_key not in self.messages:
            self.messages.add(workload_key)
            logger.info("%s has no tuned schedule for %s; the constructed one is used", func_name, target)
        return found

    def _query_inside(self, target: Target, workload_key: str, func_name: str) -> Any:
        return self.memory.get((workload_key, target.kind.name))

    def update(self, target: TargetLike, workload_key: str, state: Any) -> None:
        """Use a state for a workload from now on."""
        self.memory[workload_key, Target(target).kind.name] = state
