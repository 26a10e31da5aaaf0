"""The tuner with gradient-boosted trees."""

from __future__ import annotations

from typing import Any

from tilewright.autotvm.tuner.model_based_tuner import ModelBasedTuner, ModelOptimizer
from tilewright.autotvm.tuner.sa_model_optimizer import SimulatedAnnealingOptimizer
from tilewright.autotvm.tuner.xgboost_cost_model import XGBoostCostModel

_LOWERED = {"parallel_size": 32, "n_iter": 24, "early_stop": 6, "enumerated": 256}
"""Annealing where each point has to be lowered for its features: as many as fit between two batches."""


class XGBTuner(ModelBasedTuner):
    """Plans of ``plan_size`` points, found by simulated annealing on a cost model: see ``XGBoostCostModel``."""

    def __init__(
        self,
        task: Any,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "rank",
        num_threads: int | None = None,
        optimizer: str | ModelOptimizer = "sa",
        diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
    ) -> None:
        model = XGBoostCostModel(task, feature_type, loss_type, num_threads, log_interval // 2)
        if optimizer == "sa":
            limits: dict[str, Any] = {} if feature_type == "knob" else _LOWERED
            optimizer = SimulatedAnnealingOptimizer(task, log_interval=log_interval, **limits)
        if not isinstance(optimizer, ModelOptimizer):
            raise RuntimeError(f"unknown optimizer {optimizer!r}: it is 'sa', or a ModelOptimizer")
        super().__init__(task, model, optimizer, plan_size, diversity_filter_ratio)
        self.cost_model: XGBoostCostModel = model

    def tune(self, *args: Any, **kwargs: Any) -> None:
        """As every tuner; the features of the candidates are forgotten afterwards."""
        super().tune(*args, **kwargs)
        self.cost_model.feature_cache.clear(self.cost_model.fea_type)
