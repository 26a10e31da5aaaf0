"""Declarations of external code generators about the operators that they support."""

from tilewright.relay.op.contrib import register
from tilewright.relay.op.contrib.register import get_pattern_table, register_pattern_table
