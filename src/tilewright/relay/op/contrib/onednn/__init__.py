"""oneDNN: what it takes of a model, as patterns with checks, and its code generator."""

from tilewright.relay.op.contrib.onednn.patterns import BACKEND, pattern_table

__all__ = ["BACKEND", "pattern_table"]
