"""What other code generators say about the operators that they take."""

from tilewright.relay.op.contrib import register
from tilewright.relay.op.contrib.register import get_pattern_table, register_pattern_table
