"""Search strategies: which candidates of the design spaces are measured next."""

from tilewright.meta_schedule.search_strategy.search_strategy import (
    MeasureCandidate,
    PySearchStrategy,
    ReplayTrace,
    SearchStrategy,
)

__all__ = [
    "MeasureCandidate",
    "PySearchStrategy",
    "ReplayTrace",
    "SearchStrategy",
]
