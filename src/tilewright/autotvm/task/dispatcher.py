"""The contexts that use results of tuning: the best of records, and the plan of the graph tuner."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.autotvm.task.constructed.compiled import compiled_workload
from tilewright.autotvm.task.constructed.lookup import Fit, graph_choice, measured_seconds, tuned_construction
from tilewright.autotvm.task.context import (
    ApplyConfig,
    ApplyFixedConfig,
    DispatchContext,
    FallbackContext,
    Workload,
    clear_fallback_cache,
)
from tilewright.autotvm.task.records import load_from_file
from tilewright.autotvm.task.space import FallbackConfigEntity
from tilewright.schedule.tuning import GraphDecision, ImplementationRequest, ScheduleRequest
from tilewright.search.outcomes import typical
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule

logger = logging.getLogger("autotvm")

Record = tuple[Any, Any]
"""A MeasureInput and its MeasureResult."""


class ApplyHistoryBest(DispatchContext):
    """The best configurations of records: a file, a list of files, or pairs of inputs and results."""

    def __init__(self, records: Any) -> None:
        super().__init__()
        self.best_by_targetkey: dict[tuple[str, Workload], Record] = {}
        self.best_by_model: dict[tuple[str, Workload], Record] = {}
        self._best_user_defined: dict[tuple[str, Workload], Any] = {}
        self.fit = Fit()
        if records is not None:
            self.load(records)

    def load(self, records: Any) -> None:
        """Add records; of each workload the fastest is kept."""
        count = 0
        for inp, res in _every_record(records):
            if res.error_no != 0:
                continue
            count += 1
            workload = inp.task.workload
            for one in dict.fromkeys([workload, compiled_workload(workload, inp.target)]):
                for key in inp.target.keys:
                    _keep_best(self.best_by_targetkey, (key, one), (inp, res))
                if inp.target.model != "unknown":
                    _keep_best(self.best_by_model, (inp.target.model, one), (inp, res))
        logger.debug("loaded %d records of successful measurements", count)

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        if target is None:
            raise TilewrightError(
                "the best configuration of a workload depends on the target, and none is set: use a template inside "
                "`with tvm.target.Target(...):`"
            )
        return None if workload is None else self.known(target, workload)

    def known(self, target: Target, workload: Workload) -> Any:
        """The best configuration, by the model of the target, then by its keys."""
        places = [(target.model, self.best_by_model)] + [(key, self.best_by_targetkey) for key in target.keys]
        for name, best in places:
            found = self._best_user_defined.get((name, workload))
            if found is not None:
                return found
            if (name, workload) in best:
                inp, res = best[name, workload]
                inp.config.cost = typical(res.costs)
                return inp.config
        return None

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The constructed schedule of a function, with the choices that were found for its workload."""
        return tuned_construction(request, self.known, self.fit)

    def measured_seconds(self, request: ImplementationRequest) -> float | None:
        """The best time of an implementation."""
        return measured_seconds(request, self.known)

    def graph_choice(self, decision: GraphDecision) -> Any:
        """What was found for a choice of a graph pass."""
        return graph_choice(decision, self.known)

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        if self.fit.summary():
            logger.warning("%s", self.fit.summary())

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Prefer a configuration to the records."""
        cfg.cost = 1e-9
        if target.model != "unknown":
            self._best_user_defined[target.model, workload] = cfg
        for key in target.keys:
            self._best_user_defined[key, workload] = cfg


def _every_record(records: Any) -> Iterable[Record]:
    """The records of a path, of an open file, of pairs, or of a list of those."""
    if isinstance(records, (str, Path)) or hasattr(records, "read"):
        return load_from_file(records)
    given = list(records)
    if given and all(isinstance(one, (str, Path)) or hasattr(one, "read") for one in given):
        return [record for one in given for record in load_from_file(one)]
    return given


def _keep_best(best: dict[tuple[str, Workload], Record], key: tuple[str, Workload], record: Record) -> None:
    if key not in best or typical(best[key][1].costs) > typical(record[1].costs):
        best[key] = record


class ApplyGraphBest(DispatchContext):
    """The plan of the graph tuner: its records in the order in which the operators of the model are compiled."""

    def __init__(self, records: Any) -> None:
        super().__init__()
        self._records = list(_every_record(records))
        self._counter = 0
        self._global_cfg_dict: dict[tuple[str, Workload | None], Any] = {}
        self.fit = Fit()

    def _query_inside(self, target: Target | None, workload: Workload | None) -> Any:
        if self._counter < len(self._records):
            config = self._records[self._counter][0].config
            self._counter += 1
            self._global_cfg_dict[str(target), workload] = config
            return config
        return self._global_cfg_dict.setdefault((str(target), workload), FallbackConfigEntity())

    def known(self, target: Target, workload: Workload) -> Any:
        """The configuration of the plan for a workload, whatever the order."""
        for inp, _ in self._records:
            if inp.task.workload == workload:
                return inp.config
        return None

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The constructed schedule of a function, with the choices of the plan."""
        return tuned_construction(request, self.known, self.fit)

    def graph_choice(self, decision: GraphDecision) -> Any:
        """What the plan says of a choice of a graph pass."""
        return graph_choice(decision, self.known)

    def update(self, target: Target, workload: Workload, cfg: Any) -> None:
        """Use a configuration for a workload."""
        self._global_cfg_dict[str(target), workload] = cfg


def apply_history_best(records: Any) -> ApplyHistoryBest:
    """The best configurations of records, for ``with``."""
    return ApplyHistoryBest(records)


__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyGraphBest",
    "ApplyHistoryBest",
    "DispatchContext",
    "FallbackContext",
    "apply_history_best",
    "clear_fallback_cache",
]
