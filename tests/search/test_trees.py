"""Models of trees: they order candidates that they have not seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.search import trees
from tilewright.search.trees import PackSumTrees, Trees
from tilewright.support.errors import TilewrightError

pytest.importorskip("xgboost")


def agreement(found: np.ndarray, wanted: np.ndarray) -> float:
    """The part of pairs that are in the right order."""
    first, second = np.triu_indices(len(found), 1)
    return float(np.mean((found[first] > found[second]) == (wanted[first] > wanted[second])))


@pytest.mark.parametrize("objective", ["rank", "reg"])
def test_trees_order_what_they_have_not_seen(objective: str, tmp_path: Path) -> None:
    """They also survive a file."""
    generator = np.random.default_rng(0)
    rows = generator.random((400, 5))
    targets = 1 / (0.1 + rows[:, 0] + (rows[:, 1] - 0.5) ** 2)
    model = Trees(objective)
    model.fit(rows[:300], targets[:300])
    found = model.predict(rows[300:])
    assert agreement(found, targets[300:]) > 0.9
    model.save(tmp_path / "model.json")
    again = Trees(objective)
    again.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.predict(rows[300:]), found, rtol=1e-6)


def test_groups_are_compared_within_themselves_only() -> None:
    """Two tasks with opposite scales do not disturb each other."""
    generator = np.random.default_rng(1)
    rows = generator.random((200, 3))
    targets = np.where(np.arange(200) < 100, rows[:, 0], 1000 + rows[:, 0])
    model = Trees("rank")
    model.fit(rows, targets, groups=[100, 100])
    assert agreement(model.predict(rows[:100]), targets[:100]) > 0.9


def test_a_base_is_what_is_learned_on_top_of() -> None:
    """Transfer from another model: without new knowledge, its order stays."""
    generator = np.random.default_rng(2)
    rows = generator.random((200, 3))
    first = Trees("reg")
    first.fit(rows, rows[:, 0])
    second = Trees("reg", rounds=20)
    second.fit(rows[:50], rows[:50, 0] + rows[:50, 1], base=first.predict(rows[:50]))
    found = second.predict(rows[50:], base=first.predict(rows[50:]))
    assert agreement(found, rows[50:, 0] + rows[50:, 1]) > 0.8


def test_rows_of_a_candidate_add_up() -> None:
    """The score of a candidate is a sum of unknown parts, which are learned; one without rows is the worst."""
    generator = np.random.default_rng(3)
    packs = [generator.random((count, 4)) for count in generator.integers(1, 6, 500)]
    costs = np.array([np.sum(pack[:, 0] * 2 + (pack[:, 1] > 0.5)) for pack in packs])
    targets = costs / costs.max()
    model = PackSumTrees()
    model.fit_packs(packs[:400], targets[:400])
    found = model.predict_packs(packs[400:])
    assert agreement(found, targets[400:]) > 0.9
    assert np.isclose(model.predict_rows(packs[400]).sum(), found[0], rtol=1e-4)
    assert model.predict_packs([packs[400], np.zeros((0, 4))])[1] == -np.inf


def test_mistakes_are_told() -> None:
    """An unknown objective, a model that has not learned, a file that is no model."""
    with pytest.raises(TilewrightError, match="rank, reg, not 'order'"):
        Trees("order")
    with pytest.raises(TilewrightError, match="call fit first"):
        Trees().predict([[1.0]])
    with pytest.raises(TilewrightError, match="nothing to save"):
        Trees().save("model.json")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    """The error names it."""
    path = tmp_path / "model.json"
    path.write_text("{}")
    with pytest.raises(TilewrightError, match="model.json is not a model of xgboost"):
        Trees().load(path)


def test_without_xgboost_a_line_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Search goes on without a learned model."""
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    trees.has_trees.cache_clear()
    try:
        assert not trees.has_trees() and not trees.has_trees()
        assert capsys.readouterr().err == f"{trees.NOTICE}\n"
        with pytest.raises(TilewrightError, match=r"pip install tilewright\[tune\]"):
            Trees().fit([[1.0]], [1.0])
    finally:
        trees.has_trees.cache_clear()


def test_many_rows_that_are_alike_do_not_overshoot() -> None:
    """A candidate of many stores: the sum of their parts goes to its target instead of away from it."""
    random = np.random.default_rng(0)
    packs = [random.standard_normal((24, 8)).astype(np.float32) for _ in range(3)]
    model = PackSumTrees()
    model.fit_packs(packs, [1.0, 0.5, 0.25])
    assert np.abs(model.predict_packs(packs)).max() < 2
