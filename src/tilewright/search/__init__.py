"""What both tuners stand on: records that are not lost, and candidates built and measured without harm.

``records`` has files of records, ``measure`` builders and runners.
"""

from tilewright.search.measure import (
    Argument,
    BuildJob,
    Built,
    ErrorKind,
    Measured,
    RunOptions,
    arguments_of,
    build_all,
    run_all,
)
from tilewright.search.records import Line, Loaded, Problem, RecordFile
