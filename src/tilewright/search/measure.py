"""Building and measuring candidates.

``build_all`` lowers and compiles on all cores; ``run_all`` measures afterwards, with the machine otherwise idle.
Neither raises for what a candidate does.
"""

from tilewright.search.building import BuildJob, build_all, forget_kept
from tilewright.search.options import Argument, RunOptions, arguments_of
from tilewright.search.outcomes import Built, ErrorKind, Measured
from tilewright.search.running import close_runners, run_all

__all__ = [
    "Argument",
    "BuildJob",
    "Built",
    "ErrorKind",
    "Measured",
    "RunOptions",
    "arguments_of",
    "build_all",
    "close_runners",
    "forget_kept",
    "run_all",
]
