"""Ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.ops.classes import chosen_label, class_labels, labels_at, transformed
from tilewright.relay.frontend.onnx.ops.forests import COMPARISONS, Forest, aggregated, walked
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN, converter
from tilewright.relay.frontend.onnx.tensors import array_of


def _numbers(node: Node, name: str) -> list[Any]:
    """A list that is an attribute, or a tensor under the name with ``_as_tensor``."""
    found = node.attr(name, None)
    if found is not None:
        return list(found)
    tensor = node.attr(f"{name}_as_tensor", None)
    return [] if tensor is None else array_of(tensor).reshape(-1).tolist()


def _samples(node: Node, data: RelayExpr) -> RelayExpr:
    """The data as rows of floating-point numbers."""
    rows = data if node.rank(data) == 2 else relay.reshape(data, (-1, node.static_shape(data)[-1]))
    return rows if node.dtype(rows) in ("float32", "float64") else relay.cast(rows, "float32")


def _listed_forest(node: Node, prefix: str) -> Forest:
    """The trees of the attributes of versions 1 to 4; ``prefix`` is that of the lists of weights."""
    trees, ids = _numbers(node, "nodes_treeids"), _numbers(node, "nodes_nodeids")
    places = {key: place for place, key in enumerate(zip(trees, ids, strict=True))}
    count = len(ids)
    missing = _numbers(node, "nodes_missing_value_tracks_true") or [0] * count
    forest = Forest()
    columns = [_numbers(node, f"nodes_{name}") for name in ("featureids", "values", "modes")]
    children = [_numbers(node, f"nodes_{name}") for name in ("truenodeids", "falsenodeids")]
    if any(len(column) != count for column in (*columns, *children, missing)):
        raise node.fail("the lists of nodes have different lengths")
    for feature, value, mode, lost in zip(*columns, missing, strict=True):
        kind = str(mode).removeprefix("BRANCH_")
        if kind != "LEAF" and kind not in COMPARISONS:
            raise node.fail(f"nodes of mode {mode} are not supported")
        forest.add(int(feature), float(value), kind, bool(lost))
    for place in range(count):
        if forest.modes[place] != "LEAF":
            forest.yes[place] = _child(node, places, trees[place], children[0][place])
            forest.no[place] = _child(node, places, trees[place], children[1][place])
    seen: set[Any] = set()
    for place, tree in enumerate(trees):
        if tree not in seen:
            forest.roots.append(place)
            seen.add(tree)
    columns = [_numbers(node, f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids", "weights")]
    for tree, leaf, target, weight in zip(*columns, strict=True):
        place = _child(node, places, tree, leaf)
        forest.weights.setdefault(place, []).append((int(target), float(weight)))
    return forest


def _child(node: Node, places: dict[Any, int], tree: Any, identifier: Any) -> int:
    found = places.get((tree, identifier))
    if found is None:
        raise node.fail(f"tree {tree} has no node {identifier}")
    return found


def _leaf_sums(node: Node, data: RelayExpr, forest: Forest, targets: int, function: str) -> RelayExpr:
    if not forest.roots:
        raise node.fail("there is no tree")
    leaves = walked(node, data, forest)
    return aggregated(node, leaves, forest, targets, function, node.dtype(data))


@converter("TreeEnsembleRegressor", domain=ML_DOMAIN)
def tree_ensemble_regressor(node: Node, data: RelayExpr) -> RelayExpr:
    """The weights of the leaves that each sample reaches, combined."""
    rows = _samples(node, data)
    targets = int(node.attr("n_targets", 1))
    function = str(node.attr("aggregate_function", "SUM"))
    scores = _leaf_sums(node, rows, _listed_forest(node, "target"), targets, function)
    base = _numbers(node, "base_values")
    if base:
        scores = relay.add(scores, const(np.asarray(base, dtype=node.dtype(rows))))
    made = transformed(node, scores, str(node.attr("post_transform", "NONE")))
    return converted(node, made, "float32")


@converter("TreeEnsembleClassifier", domain=ML_DOMAIN)
def tree_ensemble_classifier(node: Node, data: RelayExpr) -> Sequence[RelayExpr]:
    """The label with the highest sum of weights, and the scores of all."""
    rows = _samples(node, data)
    forest = _listed_forest(node, "class")
    labels = class_labels(node, "classlabels_int64s")
    kind = str(node.attr("post_transform", "NONE"))
    base = _numbers(node, "base_values")
    scored = sorted({target for pairs in forest.weights.values() for target, _ in pairs})
    if len(labels) <= 2 and len(scored) == 1:
        return _one_scored_class(node, rows, forest, labels, kind, base)
    scores = _leaf_sums(node, rows, forest, max(len(labels), 1), "SUM")
    if base:
        scores = relay.add(scores, const(np.asarray(base, dtype=node.dtype(rows))))
    places = relay.argmax(scores, axis=1)
    return labels_at(labels, places), converted(node, transformed(node, scores, kind), "float32")


def _one_scored_class(
    node: Node, rows: RelayExpr, forest: Forest, labels: list[int], kind: str, base: list[Any]
) -> Sequence[RelayExpr]:
    """Trees that score one class of two. Weights that are all positive are probabilities, others are margins; ONNX
    leaves open what that gives, and this is what ONNX Runtime does."""
    if kind == "PROBIT" or len(base) > 1:
        raise node.fail(
            f"{kind} and {len(base)} base values for trees that score one class are not supported"
        )
    weights = [weight for pairs in forest.weights.values() for _, weight in pairs]
    second = len(labels) == 2 and any(target == 1 for pairs in forest.weights.values() for target, _ in pairs)
    for place, pairs in forest.weights.items():
        forest.weights[place] = [(0, weight) for _, weight in pairs]
    score = _leaf_sums(node, rows, forest, 1, "SUM")
    if base:
        score = relay.add(score, node.constant(float(base[-1]), score))
    probabilities = min(weights, default=0) >= 0 and len(labels) == 2
    threshold = node.constant(0.5 if probabilities else 0, score)
    positive = relay.reshape(relay.greater(score, threshold), (-1,))
    yes, no = (labels[1], labels[0]) if len(labels) == 2 else (1, 0)
    made = score
    if second:
        made = transformed(node, relay.concatenate([relay.zeros_like(score), score], axis=1), kind)
    elif len(labels) == 2:
        if probabilities and kind != "LOGISTIC":
            made = relay.concatenate([relay.subtract(node.constant(1, score), score), score], axis=1)
        else:
            pair = relay.concatenate([relay.negative(score), score], axis=1)
            made = transformed(node, pair, "LOGISTIC") if kind == "LOGISTIC" else pair
    return chosen_label(node, positive, yes, no), converted(node, made, "float32")


# Version 5

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_FUNCTIONS = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _members(values: Sequence[float]) -> list[list[float]]:
    """The sets of the nodes that test for membership, in the order of the nodes; NaN ends each."""
    sets: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    return sets[:-1]


def _tensor(node: Node, name: str) -> list[Any]:
    found = node.attr(name, None)
    return [] if found is None else list(array_of(found).reshape(-1).tolist())


def _tensor_forest(node: Node) -> Forest:
    """The trees of the attributes of version 5: inner nodes and leaves are in separate lists."""
    modes, splits = _tensor(node, "nodes_modes"), _tensor(node, "nodes_splits")
    features = [int(item) for item in node.attr("nodes_featureids")]
    yes, no = list(node.attr("nodes_truenodeids")), list(node.attr("nodes_falsenodeids"))
    yes_leaf, no_leaf = list(node.attr("nodes_trueleafs")), list(node.attr("nodes_falseleafs"))
    missing = list(node.attr("nodes_missing_value_tracks_true", None) or [0] * len(modes))
    sets = iter(_members(_tensor(node, "membership_values")))
    forest = Forest()
    leaves = []
    for target, weight in zip(node.attr("leaf_targetids"), _tensor(node, "leaf_weights"), strict=True):
        leaves.append(forest.add(0, 0.0, "LEAF"))
        forest.weights[leaves[-1]] = [(int(target), float(weight))]
    # A node that tests for membership is a chain of nodes, one for each member.
    chains: list[list[int]] = []
    for mode, split, feature, lost in zip(modes, splits, features, missing, strict=True):
        if not 0 <= mode < len(_MODES):
            raise node.fail(f"a node has the mode {mode}")
        values = [float(split)] if _MODES[mode] != "MEMBER" else next(sets, [])
        kind = "EQ" if _MODES[mode] == "MEMBER" else _MODES[mode]
        if not values:
            raise node.fail("a node tests for membership, but membership_values has no set for it")
        chains.append([forest.add(feature, value, kind, bool(lost)) for value in values])
    for place, chain in enumerate(chains):
        hit = _target(node, yes[place], yes_leaf[place], leaves, chains)
        miss = _target(node, no[place], no_leaf[place], leaves, chains)
        for link, following in zip(chain, [*chain[1:], miss], strict=True):
            forest.yes[link], forest.no[link] = hit, following
    for root in node.attr("tree_roots"):
        forest.roots.append(_target(node, root, 0, leaves, chains))
    return forest


def _target(node: Node, place: int, is_leaf: int, leaves: list[int], chains: list[list[int]]) -> int:
    if not 0 <= place < len(leaves if is_leaf else chains):
        raise node.fail(f"there is no {'leaf' if is_leaf else 'node'} {place}")
    return leaves[place] if is_leaf else chains[place][0]


@converter("TreeEnsemble", since=5, domain=ML_DOMAIN)
def tree_ensemble(node: Node, data: RelayExpr) -> RelayExpr:
    """The weights of the leaves that each sample reaches, combined, in the type of the data."""
    dtype = node.dtype(data)
    rows = _samples(node, data)
    function = _FUNCTIONS[int(node.attr("aggregate_function", 1))]
    scores = _leaf_sums(node, rows, _tensor_forest(node), int(node.attr("n_targets", 1)), function)
    made = transformed(node, scores, _TRANSFORMS[int(node.attr("post_transform", 0))])
    return converted(node, made, dtype)
