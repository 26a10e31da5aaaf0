"""Ensembles of decision trees give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.forest_models import forest
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN
from tilewright.support.errors import ModelError

DATA = np.random.default_rng(0).standard_normal((7, 4)).astype("float32")
GAPS = DATA.copy()
GAPS[::2, 1] = np.nan
GAPS[1, 2] = np.nan
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def tree_model(operator: str, data: Any, outputs: int = 1, unknown: bool = False, **attributes: Any) -> Any:
    """A model of one ensemble."""
    model = node_model(operator, {"x": data}, outputs, ML_DOMAIN, 17, unknown=unknown, **attributes)
    model.opset_import[-1].version = 3
    return model


def compare(operator: str, data: Any, outputs: int = 1, **attributes: Any) -> None:
    """The model gives what ONNX Runtime gives."""
    model = tree_model(operator, data, outputs, **attributes)
    assert_close(run(model, {"x": data}), reference_runtime.outputs(model, {"x": data}))


@pytest.mark.parametrize("function", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_leaves_are_combined(function: str) -> None:
    """Over the trees, for one target and for several with base values."""
    compare("TreeEnsembleRegressor", DATA, aggregate_function=function, n_targets=1, **forest("target", [0]))
    compare(
        "TreeEnsembleRegressor",
        DATA,
        aggregate_function=function,
        n_targets=3,
        base_values=[0.1, 0.2, 0.3],
        **forest("target", [0, 1, 2]),
    )


@pytest.mark.parametrize("missing", [False, True])
def test_every_comparison_and_missing_values(missing: bool) -> None:
    """All modes in one ensemble; what is not a number goes where the node says."""
    attributes = forest("target", [0, 1], modes=MODES, missing=missing, seed=4)
    compare("TreeEnsembleRegressor", GAPS, n_targets=2, **attributes)


def test_trees_that_are_one_leaf() -> None:
    """A tree without a comparison gives its weight to every sample."""
    compare("TreeEnsembleRegressor", DATA, n_targets=1, **forest("target", [0], depth=0))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_three_classes(transform: str) -> None:
    """Labels and scores, through every transform."""
    attributes = forest("class", [0, 1, 2], depth=3, seed=6, positive=transform == "PROBIT")
    compare(
        "TreeEnsembleClassifier",
        DATA,
        2,
        classlabels_int64s=[3, 5, 9],
        post_transform=transform,
        base_values=[0.1, 0.2, 0.3],
        **attributes,
    )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("scored", [0, 1])
def test_one_scored_class_of_two(transform: str, positive: bool, scored: int) -> None:
    """Positive weights are probabilities, others are margins."""
    attributes = forest("class", [scored], depth=3, seed=8, positive=positive)
    compare(
        "TreeEnsembleClassifier", DATA, 2, classlabels_int64s=[3, 5], post_transform=transform, **attributes
    )


def test_any_number_of_samples() -> None:
    """The number of samples need not be known."""
    attributes = forest("target", [0, 1])
    model = tree_model("TreeEnsembleRegressor", DATA, unknown=True, n_targets=2, **attributes)
    fixed = tree_model("TreeEnsembleRegressor", DATA, n_targets=2, **attributes)
    assert_close(run(model, {"x": DATA}), run(fixed, {"x": DATA}))


def test_membership_in_a_set() -> None:
    """A node of version 5 that asks whether a feature is one of several values."""
    tensor = onnx.numpy_helper.from_array
    model = node_model(
        "TreeEnsemble",
        {"x": np.asarray([[1.0], [2.5], [4.0], [7.0]], "float32")},
        domain=ML_DOMAIN,
        n_targets=1,
        aggregate_function=1,
        tree_roots=[0],
        nodes_modes=tensor(np.asarray([6], "uint8")),
        nodes_featureids=[0],
        nodes_splits=tensor(np.asarray([0.0], "float32")),
        nodes_truenodeids=[0],
        nodes_trueleafs=[1],
        nodes_falsenodeids=[1],
        nodes_falseleafs=[1],
        leaf_targetids=[0, 0],
        leaf_weights=tensor(np.asarray([10.0, -1.0], "float32")),
        membership_values=tensor(np.asarray([1.0, 4.0, 9.0, np.nan], "float32")),
    )
    model.opset_import[-1].version = 5
    given = {"x": np.asarray([[1.0], [2.5], [4.0], [7.0]], "float32")}
    np.testing.assert_array_equal(run(model, given)[0], [[10], [-1], [10], [-1]])


def test_broken_trees_are_errors() -> None:
    """A cycle, a child that is not there, a feature that the data do not have."""
    cycle = forest("target", [0], trees=1, depth=2, seed=1)
    inner = [place for place, mode in enumerate(cycle["nodes_modes"]) if mode != "LEAF"]
    cycle["nodes_truenodeids"][inner[0]] = cycle["nodes_nodeids"][inner[0]]
    with pytest.raises(ModelError, match="a path of more than"):
        from_onnx(tree_model("TreeEnsembleRegressor", DATA, n_targets=1, **cycle))
    lost = forest("target", [0], trees=1, depth=2)
    lost["nodes_truenodeids"][0] = 99
    with pytest.raises(ModelError, match="tree 0 has no node 99"):
        from_onnx(tree_model("TreeEnsembleRegressor", DATA, n_targets=1, **lost))
    wide = forest("target", [0], trees=1, depth=2)
    wide["nodes_featureids"][0] = 4
    with pytest.raises(ModelError, match="feature 4, but the data have 4"):
        from_onnx(tree_model("TreeEnsembleRegressor", DATA, n_targets=1, **wide))
