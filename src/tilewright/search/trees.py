"""Gradient-boosted trees as models of cost: they rank candidates before any is compiled.

``Trees`` learn from one row of features a candidate, ``PackSumTrees`` from several rows a candidate, whose predictions
add up. Both need xgboost (the extra ``tune``); without it, ``has_trees`` is False and a notice says so once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.support.errors import TilewrightError

Array = npt.NDArray[np.float32]

NOTICE = (
    "tilewright: xgboost is not installed, so candidates are not ranked by a learned model: "
    "pip install tilewright[tune]"
)

_OBJECTIVES: dict[str, dict[str, Any]] = {
    "rank": {
        "objective": "rank:pairwise",
        # Pairs from the whole of a group: search has to know the bad ones too.
        "lambdarank_pair_method": "mean",
        "lambdarank_num_pair_per_sample": 8,
    },
    "reg": {"objective": "reg:squarederror"},
}


@cache
def has_trees() -> bool:
    """True if xgboost is there; says so once, in one line, where it is not."""
    try:
        _xgboost()
    except TilewrightError:
        sys.stderr.write(f"{NOTICE}\n")
        return False
    return True


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError as problem:
        raise TilewrightError(
            "models of trees need xgboost: pip install tilewright[tune], or search without a learned model"
        ) from problem
    return xgboost


def _parameters(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "max_depth": 6,
        "eta": 0.3,
        "gamma": 0.001,
        "min_child_weight": 0,
        "tree_method": "hist",
        # The data are small, and threads that wait for each other suffer from whatever else runs.
        "nthread": 1,
        "seed": 0,
        "verbosity": 0,
        **given,
    }


class Trees:
    """One row of features a candidate. ``objective`` is ``"rank"``, which learns only the order of the targets, or
    ``"reg"``, which learns their values. Other arguments are xgboost's."""

    def __init__(self, objective: str = "rank", rounds: int = 100, **parameters: Any) -> None:
        if objective not in _OBJECTIVES:
            raise TilewrightError(f"the objectives are {', '.join(_OBJECTIVES)}, not {objective!r}")
        self.objective = objective
        self.rounds = rounds
        self.parameters = _parameters({**_OBJECTIVES[objective], **parameters})
        self.booster: Any = None

    def fit(
        self,
        features: npt.ArrayLike,
        targets: npt.ArrayLike,
        groups: Sequence[int] | None = None,
        base: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from rows of features; a greater target is better. ``groups`` are the sizes of runs of rows that are
        compared with each other only, by default all. ``base`` are predictions of another model to start from."""
        xgboost = _xgboost()
        rows = np.asarray(features, np.float32)
        data = xgboost.DMatrix(rows, np.asarray(targets, np.float32))
        if self.objective == "rank":
            data.set_group(list(groups) if groups is not None else [len(rows)])
        if base is not None:
            data.set_base_margin(np.asarray(base, np.float32))
        self.booster = xgboost.train(self.parameters, data, self.rounds)

    def predict(self, features: npt.ArrayLike, base: npt.ArrayLike | None = None) -> Array:
        """A score for each row; a greater one is better."""
        if self.booster is None:
            raise TilewrightError("the model has learned nothing yet: call fit first")
        data = _xgboost().DMatrix(np.asarray(features, np.float32))
        if base is not None:
            data.set_base_margin(np.asarray(base, np.float32))
        found: Array = self.booster.predict(data, output_margin=True)
        return found

    def save(self, path: str | Path) -> None:
        """Write what was learned, as xgboost's JSON."""
        if self.booster is None:
            raise TilewrightError("the model has learned nothing yet: there is nothing to save")
        self.booster.save_model(str(path))

    def load(self, path: str | Path) -> None:
        """Read what ``save`` wrote."""
        xgboost = _xgboost()
        booster = xgboost.Booster()
        try:
            booster.load_model(str(path))
        except (xgboost.core.XGBoostError, ValueError) as problem:
            raise TilewrightError(f"{path} is not a model of xgboost") from problem
        self.booster = booster


class PackSumTrees(Trees):
    """Several rows of features a candidate: one for each store of a program, say. The score of a candidate is the sum
    of its rows'. Candidates with greater targets weigh more: the order of the best is what matters."""

    def __init__(self, rounds: int = 100, **parameters: Any) -> None:
        super().__init__("reg", rounds, **{"base_score": 0.0, **parameters})

    def fit_packs(self, packs: Sequence[npt.ArrayLike], targets: npt.ArrayLike) -> None:
        """Learn from the rows of each candidate, and a target for each."""
        rows, owner = _stacked(packs)
        wanted = np.asarray(targets, np.float64)
        weights = np.maximum(wanted, 1e-3)

        sizes = np.bincount(owner, minlength=len(wanted))

        def objective(predicted: Any, _: Any) -> tuple[Any, Any]:
            # The derivative of half of weight times (sum - target) squared, by each row of a sum. All rows of a sum
            # move at once: with the second derivative by one of them, many rows would overshoot, more in each round.
            sums = np.bincount(owner, weights=np.asarray(predicted, np.float64), minlength=len(wanted))
            gradient = (weights * (sums - wanted))[owner]
            return gradient, (weights * sizes)[owner]

        data = _xgboost().DMatrix(rows, np.zeros(len(rows), np.float32))
        parameters = {name: value for name, value in self.parameters.items() if name != "objective"}
        self.booster = _xgboost().train(parameters, data, self.rounds, obj=objective)

    def predict_packs(self, packs: Sequence[npt.ArrayLike]) -> Array:
        """The score of each candidate; a candidate without rows has the least."""
        rows, owner = _stacked(packs)
        sums = np.full(len(packs), -np.inf)
        if len(rows):
            present = np.unique(owner)
            found = np.bincount(owner, weights=self.predict(rows), minlength=len(packs))
            sums[present] = found[present]
        return sums.astype(np.float32)

    def predict_rows(self, pack: npt.ArrayLike) -> Array:
        """The part of each row in a candidate's score."""
        return self.predict(pack)


def _stacked(packs: Sequence[npt.ArrayLike]) -> tuple[Array, npt.NDArray[np.int64]]:
    """All rows, and for each the number of the candidate that it belongs to."""
    blocks = [np.atleast_2d(np.asarray(pack, np.float32)) for pack in packs]
    sizes = [0 if block.size == 0 else len(block) for block in blocks]
    owner = np.repeat(np.arange(len(blocks)), sizes)
    full = [block for block, size in zip(blocks, sizes, strict=True) if size]
    width = full[0].shape[1] if full else 0
    return (np.concatenate(full) if full else np.zeros((0, width), np.float32)), owner
