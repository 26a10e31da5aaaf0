"""When a backend's own passes run."""

from __future__ import annotations

from enum import Enum


class PassPhase(Enum):
    """The graph passes before partitioning, and after it; the loop passes, in the order of their numbers."""

    PRE_PARTITIONING = 0
    POST_PARTITIONING_0 = 1
    POST_PARTITIONING_1 = 2
    TIR_PHASE_0 = 3
    TIR_PHASE_1 = 4
    TIR_PHASE_2 = 5
    TIR_PHASE_3 = 6

    @property
    def is_graph_phase(self) -> bool:
        """True for the phases of graph passes."""
        return self.value <= PassPhase.POST_PARTITIONING_1.value
