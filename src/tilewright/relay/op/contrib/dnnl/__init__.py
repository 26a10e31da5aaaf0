"""oneDNN under the name that it has in TVM: programs that say "dnnl" get the same backend."""

from __future__ import annotations

from tilewright.relay.op.contrib import onednn
from tilewright.relay.op.contrib.backends import Backend, register_backend
from tilewright.relay.op.contrib.onednn.patterns import HEAVY, OPERATORS, why_missing
from tilewright.relay.op.contrib.register import PatternTable

NAME = "dnnl"


def pattern_table() -> PatternTable:
    """The patterns of oneDNN, named ``dnnl.…``."""
    return onednn.pattern_table(NAME)


BACKEND = register_backend(Backend(NAME, pattern_table, OPERATORS, why_missing, heavy=HEAVY))
