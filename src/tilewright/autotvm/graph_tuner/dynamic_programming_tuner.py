"""The graph tuner by dynamic programming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.autotvm.graph_tuner.base_graph_tuner import BaseGraphTuner
from tilewright.relay.target.cpu.least_cost import least_cost


class DPTuner(BaseGraphTuner):
    """Eliminates node after node: the best state of one, for every combination of its neighbours' states, becomes a
    cost of the neighbours. That is exact."""

    def solve(
        self,
        costs: Sequence[Sequence[float]],
        pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]],
    ) -> list[int]:
        """The states with the least total."""
        return least_cost(costs, pairs)
