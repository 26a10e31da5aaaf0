"""The graph tuner as a partitioned Boolean quadratic problem.

Nodes with one neighbour (R1) and with two (R2) are reduced into costs of their neighbours, which is exact; where only
nodes with more are left, the one with the most neighbours takes the state that is best so far (RN).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.autotvm.graph_tuner.base_graph_tuner import BaseGraphTuner

Vector = np.ndarray[Any, Any]


class PBQPTuner(BaseGraphTuner):
    """Reduces the problem node by node: fast on graphs with nodes of many neighbours, where it need not be exact."""

    def solve(
        self,
        costs: Sequence[Sequence[float]],
        pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]],
    ) -> list[int]:
        """States with a small total."""
        return _Reduction(costs, pairs).solved()


class _Reduction:
    def __init__(
        self,
        costs: Sequence[Sequence[float]],
        pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]],
    ) -> None:
        self.vectors: dict[int, Vector] = {node: np.array(row, dtype=float) for node, row in enumerate(costs)}
        self.edges: dict[int, dict[int, Vector]] = {node: {} for node in self.vectors}
        self.order: list[tuple[int, list[tuple[int, Vector]], Vector]] = []
        for (one, other), rows in pairs.items():
            self._add(one, other, np.array(rows, dtype=float))

    def _add(self, one: int, other: int, rows: Vector) -> None:
        if one == other:
            self.vectors[one] = self.vectors[one] + np.diagonal(rows)
            return
        before = self.edges[one].get(other, 0.0)
        self.edges[one][other] = before + rows
        self.edges[other][one] = self.edges[one][other].T

    def solved(self) -> list[int]:
        """Reduce everything, then choose in the opposite order."""
        left = set(self.vectors)
        while left:
            node = min(left, key=lambda one: (len(self.edges[one]), one))
            if len(self.edges[node]) > 2:
                node = max(left, key=lambda one: (len(self.edges[one]), -one))
            self._reduce(node)
            left.remove(node)
        states: dict[int, int] = {}
        for node, neighbours, vector in reversed(self.order):
            total = vector.copy()
            for other, rows in neighbours:
                total += rows[:, states[other]]
            states[node] = int(np.argmin(total))
        return [states[node] for node in sorted(states)]

    def _reduce(self, node: int) -> None:
        """Take a node out, and remember what its choice depends on."""
        neighbours = list(self.edges[node].items())
        vector = self.vectors[node]
        if len(neighbours) > 2:
            # RN: fixed by what is known now.
            total = vector + sum(rows.min(axis=1) for _, rows in neighbours)
            state = int(np.argmin(total))
            fixed = np.full(len(vector), np.inf)
            fixed[state] = 0.0
            self.order.append((node, [], fixed))
            for other, rows in neighbours:
                self.vectors[other] = self.vectors[other] + rows[state]
        else:
            self.order.append((node, neighbours, vector))
            if len(neighbours) == 1:
                ((other, rows),) = neighbours
                self.vectors[other] = self.vectors[other] + (vector[:, None] + rows).min(axis=0)
            elif len(neighbours) == 2:
                (one, first), (two, second) = neighbours
                table = (vector[:, None, None] + first[:, :, None] + second[:, None, :]).min(axis=0)
                self._forget(node)
                self._add(one, two, table)
                return
        self._forget(node)

    def _forget(self, node: int) -> None:
        for other in self.edges.pop(node):
            del self.edges[other][node]
