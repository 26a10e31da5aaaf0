"""Gradient-boosted trees as a cost model, on features of the knobs or of the lowered loops."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.autotvm import feature
from tilewright.autotvm.task.context import ApplyConfig
from tilewright.autotvm.tuner.model_based_tuner import CostModel, FeatureCache
from tilewright.search.outcomes import typical
from tilewright.search.trees import Trees, has_trees
from tilewright.support.errors import TilewrightError

logger = logging.getLogger("autotvm")

Features = np.ndarray[Any, Any]
CURVE_SAMPLES = 20


class XGBoostCostModel(CostModel):
    """``feature_type``: ``"itervar"`` (the loops and what they touch), ``"curve"`` (how reuse grows with touched
    memory; comparable between tasks), ``"knob"`` (the values of the knobs). ``loss_type``: ``"rank"`` learns the order
    of candidates, ``"reg"`` their speed. Without xgboost, every prediction is the same."""

    def __init__(
        self,
        task: Any,
        feature_type: str,
        loss_type: str,
        num_threads: int | None = None,
        log_interval: int = 25,
        upper_model: XGBoostCostModel | None = None,
    ) -> None:
        if feature_type not in _EXTRACTORS:
            raise RuntimeError(
                f"unknown feature type {feature_type!r}: it is one of {', '.join(_EXTRACTORS)}"
            )
        if loss_type not in ("rank", "reg"):
            raise RuntimeError(f"unknown loss {loss_type!r}: it is rank or reg")
        self.task = task
        self.target = task.target
        self.space = task.config_space
        self.fea_type = feature_type
        self.loss_type = loss_type
        self.num_threads = num_threads
        self.log_interval = log_interval
        self.upper_model = upper_model
        self.feature_cache: FeatureCache = (
            FeatureCache() if upper_model is None else upper_model.feature_cache
        )
        self.base_model: XGBoostCostModel | None = None
        self.trees: Trees | None = None
        self.width = 0

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        """Learn the speeds of indices of the space."""
        rows = self._get_feature([int(index) for index in xs])
        self._fit_rows(rows, np.asarray(ys, dtype=float))

    def fit_log(self, records: Iterable[Any], plan_size: int, min_seed_records: int = 500) -> bool:
        """Learn from records, also of other tasks: the speeds of each task count relative to its best."""
        groups: dict[str, list[tuple[Any, Any]]] = {}
        total = 0
        for inp, res in records:
            groups.setdefault(str(inp.task.workload), []).append((inp, res))
            total += 1
        if total < min_seed_records:
            logger.debug("%d records are fewer than the %d to learn from", total, min_seed_records)
            return False
        rows: list[Features] = []
        scores: list[float] = []
        sizes: list[int] = []
        for pairs in groups.values():
            found = [(_features_of_record(self.fea_type, inp), _speed(inp, res)) for inp, res in pairs]
            good = [(row, speed) for row, speed in found if row is not None]
            best = max((speed for _, speed in good), default=0.0)
            if not good or best <= 0:
                continue
            rows += [row for row, _ in good]
            scores += [speed / best for _, speed in good]
            sizes.append(len(good))
        if not rows:
            return False
        self._fit_rows(rows, np.array(scores), sizes)
        return True

    def _fit_rows(
        self,
        rows: Sequence[Features | None],
        scores: np.ndarray[Any, Any],
        groups: Sequence[int] | None = None,
    ) -> None:
        if not has_trees():
            return
        self.width = max([self.width, *(len(row) for row in rows if row is not None)])
        table = _table(rows, self.width)
        best = float(np.max(scores)) if len(scores) else 0.0
        # A pair-wise ranking needs few levels; a regression is of relative speeds.
        targets = scores / best if best > 0 else scores
        base = None if self.base_model is None else self.base_model.predict_rows(rows)
        options: dict[str, Any] = {} if self.num_threads is None else {"nthread": self.num_threads}
        trees = Trees(self.loss_type, **options)
        trees.fit(table, targets, groups, base)
        self.trees = trees

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> Features:
        """The scores of indices; without anything learned, all the same."""
        return self.predict_rows(self._get_feature([int(index) for index in xs]))

    def predict_rows(self, rows: Sequence[Features | None]) -> Features:
        """The scores of features; those of configurations that cannot be instantiated are the lowest."""
        base = None if self.base_model is None else self.base_model.predict_rows(rows)
        if self.trees is None:
            found = np.zeros(len(rows)) if base is None else np.array(base, dtype=float)
        else:
            found = np.array(self.trees.predict(_table(rows, self.width), base), dtype=float)
        missing = np.array([row is None for row in rows], dtype=bool)
        if missing.any() and not missing.all():
            found[missing] = found[~missing].min() - 1.0
        return found

    def load_basemodel(self, base_model: CostModel) -> None:
        """Start from what another model learned; this one then learns what is different here."""
        assert isinstance(base_model, XGBoostCostModel)
        self.base_model = base_model
        base_model.upper_model = self

    def spawn_base_model(self) -> XGBoostCostModel:
        """A model of the same kind, to learn from records with."""
        return XGBoostCostModel(
            self.task, self.fea_type, self.loss_type, self.num_threads, self.log_interval, self
        )

    def _get_feature(self, indexes: Sequence[int]) -> list[Features | None]:
        """The features of indices, each made once."""
        cache = self.feature_cache.get(self.fea_type)
        for index in indexes:
            if index not in cache:
                cache[index] = _features(self.fea_type, self.task, self.space.get(index), self.target)
        return [cache[index] for index in indexes]


def _table(rows: Sequence[Features | None], width: int) -> Features:
    """Rows of one width: those of other structures are cut, or filled with zeros."""
    table = np.zeros((len(rows), width), dtype=np.float32)
    for number, row in enumerate(rows):
        if row is not None:
            table[number, : min(len(row), width)] = row[:width]
    return table


def _speed(inp: Any, res: Any) -> float:
    return 0.0 if res.error_no != 0 else float((inp.task.flop or 1.0) / typical(res.costs))


def _knob(task: Any, config: Any, target: Any) -> Features:
    found: Features = config.get_flatten_feature()
    return found


def _itervar(task: Any, config: Any, target: Any) -> Features:
    with target:
        schedule, arguments = _instantiated(task, config)
        found = feature.get_itervar_feature_flatten(schedule, arguments, take_log=True)
    # The knobs come first: there are always as many of them, whatever the loops are.
    return np.concatenate([config.get_flatten_feature(), found])


def _curve(task: Any, config: Any, target: Any) -> Features:
    with target:
        schedule, arguments = _instantiated(task, config)
        found = feature.get_buffer_curve_sample_flatten(schedule, arguments, CURVE_SAMPLES)
    return np.array(found, dtype=np.float32)


def _instantiated(task: Any, config: Any) -> tuple[Any, Any]:
    """The schedule of a configuration, without counting its operations."""
    with ApplyConfig(config):
        made: tuple[Any, Any] = task.func(*task.args, **task.kwargs)
        return made


_EXTRACTORS: dict[str, Callable[[Any, Any, Any], Features]] = {
    "itervar": _itervar,
    "curve": _curve,
    "knob": _knob,
}


def _features(kind: str, task: Any, config: Any, target: Any) -> Features | None:
    """The features of a configuration; None if it cannot be instantiated."""
    try:
        return _EXTRACTORS[kind](task, config, target)
    except (TilewrightError, ValueError):
        return None


def _features_of_record(kind: str, inp: Any) -> Features | None:
    return _features(kind, inp.task, inp.config, inp.target)
