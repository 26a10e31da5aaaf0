"""Declarations of external code generators about the operators that they support."""

from tilewright.relay.op.contrib import register
from tilewright.relay.op.contrib.backends import (
    BACKENDS,
    Backend,
    backend_names,
    get_backend,
    register_backend,
)
from tilewright.relay.op.contrib.plugins import load_plugin
from tilewright.relay.op.contrib.register import get_pattern_table, register_pattern_table
