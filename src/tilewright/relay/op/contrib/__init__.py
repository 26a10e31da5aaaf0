"""Declarations of external code generators about the operators that they support."""

from tilewright.not_yet import attribute_not_there
from tilewright.relay.op.contrib import register
from tilewright.relay.op.contrib.register import get_pattern_table, register_pattern_table


def __getattr__(name: str) -> object:
    return attribute_not_there(__name__, name)
