"""Random decision trees, as the attributes of ONNX's operators have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def forest(
    prefix: str,
    targets: Sequence[int],
    trees: int = 5,
    depth: int = 4,
    features: int = 4,
    modes: Sequence[str] = ("BRANCH_LEQ",),
    positive: bool = False,
    missing: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """The attributes of an ensemble of versions 1 to 4. Each leaf has a weight for each of ``targets``; ``prefix`` is
    that of the lists of weights."""
    random = np.random.default_rng(seed)
    columns = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    made: dict[str, Any] = {f"nodes_{name}": [] for name in (*columns, "missing_value_tracks_true")}
    made |= {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, left: int, count: list[int]) -> int:
        own, row = count[0], len(made["nodes_treeids"])
        count[0] += 1
        is_leaf = left == 0 or (left < depth and random.random() < 0.2)
        value = 0.0 if is_leaf else float(np.float32(random.standard_normal()))
        mode = "LEAF" if is_leaf else str(random.choice(list(modes)))
        entry = (tree, own, 0 if is_leaf else int(random.integers(features)), value, mode, 0, 0)
        for name, item in zip(columns, entry, strict=True):
            made[f"nodes_{name}"].append(item)
        made["nodes_missing_value_tracks_true"].append(int(missing and random.integers(2)))
        if is_leaf:
            for target in targets:
                weight = random.standard_normal()
                weight = abs(weight) / trees if positive else weight
                leaf = (tree, own, target, float(np.float32(weight)))
                for name, item in zip(("treeids", "nodeids", "ids", "weights"), leaf, strict=True):
                    made[f"{prefix}_{name}"].append(item)
        else:
            made["nodes_truenodeids"][row] = grow(tree, left - 1, count)
            made["nodes_falsenodeids"][row] = grow(tree, left - 1, count)
        return own

    for tree in range(trees):
        grow(tree, depth, [0])
    return made
