"""Decision trees as tables, traversed by all samples through all trees at once.

The nodes of all trees are in one table. A traversal holds, for each sample and tree, the current node; each step looks
up that node's feature, threshold and children. A leaf is its own child, so that short paths wait for long ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node

COMPARISONS = {
    "LEQ": relay.less_equal,
    "LT": relay.less,
    "GTE": relay.greater_equal,
    "GT": relay.greater,
    "EQ": relay.equal,
    "NEQ": relay.not_equal,
}
DEEPEST = 1000
"""Steps: a walk is written out step by step."""
LARGEST_TABLE = 1 << 28
"""Weights: each node has a row of them."""


@dataclass
class Forest:
    """The nodes of all trees; a leaf has the mode ``LEAF``, and ``weights`` has its (target, weight) pairs."""

    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    weights: dict[int, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, feature: int, threshold: float, mode: str, missing: bool = False) -> int:
        """A new node, its own child; gives its place."""
        place = len(self.modes)
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.modes.append(mode)
        self.yes.append(place)
        self.no.append(place)
        self.missing.append(missing)
        return place

    def depth(self, node: Node) -> int:
        """The number of steps after which every walk is at a leaf."""
        reached, steps = set(self.roots), 0
        while True:
            inner = [place for place in reached if self.modes[place] != "LEAF"]
            if not inner:
                return steps
            if steps >= min(DEEPEST, len(self.modes)):
                raise node.fail(f"a tree has a path of more than {steps} nodes")
            reached = {self.yes[place] for place in inner} | {self.no[place] for place in inner}
            steps += 1


def _table(values: Any, dtype: str) -> RelayExpr:
    return const(np.asarray(values, dtype=dtype))


def walked(node: Node, data: RelayExpr, forest: Forest) -> RelayExpr:
    """The leaf that each sample reaches in each tree: a tensor of places, int32."""
    dtype = node.dtype(data)
    wide = node.shape(data)[1]
    inner = [place for place, mode in enumerate(forest.modes) if mode != "LEAF"]
    largest = max((forest.features[place] for place in inner), default=0)
    if min((forest.features[place] for place in inner), default=0) < 0 or (
        wide is not None and inner and largest >= wide
    ):
        raise node.fail(f"a tree reads feature {largest}, but the data have {wide}")
    modes = sorted({forest.modes[place] for place in inner})
    tables = _Tables(
        features=_table(forest.features, "int32"),
        thresholds=_table(forest.thresholds, dtype),
        modes=_table([modes.index(mode) if mode in modes else 0 for mode in forest.modes], "int32"),
        yes=_table(forest.yes, "int32"),
        no=_table(forest.no, "int32"),
        missing=_table(forest.missing, "bool") if any(forest.missing) else None,
    )
    roots = np.asarray(forest.roots)
    # Every walk begins at a root, where the features are known now; a first look spreads the roots over the samples.
    first = _table(np.asarray(forest.features)[roots], "int32")
    values = relay.take(data, first, axis=1)
    at_roots = _table(roots, "int32")
    places = _step(tables, modes, values, at_roots)
    for _ in range(forest.depth(node) - 1):
        values = relay.gather(data, 1, relay.take(tables.features, places))
        places = _step(tables, modes, values, places)
    return places


@dataclass
class _Tables:
    features: RelayExpr
    thresholds: RelayExpr
    modes: RelayExpr
    yes: RelayExpr
    no: RelayExpr
    missing: RelayExpr | None


def _step(tables: _Tables, modes: list[str], values: RelayExpr, places: RelayExpr) -> RelayExpr:
    """The children that walks at ``places`` come to with the values of their features."""
    thresholds = relay.take(tables.thresholds, places)
    holds: RelayExpr = COMPARISONS[modes[0] if modes else "LEQ"](values, thresholds)
    for number, mode in enumerate(modes[1:], 1):
        is_mode = relay.equal(relay.take(tables.modes, places), const(number, "int32"))
        holds = relay.where(is_mode, COMPARISONS[mode](values, thresholds), holds)
    if tables.missing is not None:
        lost = relay.logical_and(relay.isnan(values), relay.take(tables.missing, places))
        holds = relay.logical_or(holds, lost)
    return relay.where(holds, relay.take(tables.yes, places), relay.take(tables.no, places))


def aggregated(
    node: Node, leaves: RelayExpr, forest: Forest, targets: int, function: str, dtype: str
) -> RelayExpr:
    """The weights of the leaves that each sample reached, combined over the trees: one column for each target."""
    empty = {"MIN": np.inf, "MAX": -np.inf}.get(function, 0.0)
    if not 1 <= targets * len(forest.modes) <= LARGEST_TABLE:
        raise node.fail(f"{targets} targets for {len(forest.modes)} nodes are not supported")
    table = np.full((len(forest.modes), targets), empty, dtype=dtype)
    for place, pairs in forest.weights.items():
        for target, weight in pairs:
            if not 0 <= target < targets:
                raise node.fail(f"a leaf has a weight for target {target} of {targets}")
            if function == "MIN":
                table[place, target] = min(table[place, target], weight)
            elif function == "MAX":
                table[place, target] = max(table[place, target], weight)
            else:
                table[place, target] += np.dtype(dtype).type(weight)
    found = relay.take(const(table), leaves, axis=0)
    if function in ("MIN", "MAX"):
        best = (relay.min if function == "MIN" else relay.max)(found, axis=1)
        return relay.where(relay.isinf(best), const(0, dtype), best)
    total = relay.sum(found, axis=1)
    if function == "AVERAGE":
        return relay.divide(total, const(len(forest.roots), dtype))
    if function != "SUM":
        raise node.fail(f"aggregate_function {function!r} is not known")
    return total
