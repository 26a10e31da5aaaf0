"""How operators are computed on each target: computations of ``topi`` with their schedules."""

from tilewright.relay.op.strategy import generic, registration, x86, x86_layout, x86_narrow, x86_transposed
from tilewright.relay.op.strategy.generic import *  # noqa: F403
