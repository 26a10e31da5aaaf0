"""Hybrid script: loops written as a Python function, which is a tensor operation and also runs in Python."""

from tilewright.te.hybrid.module import HybridModule, build
from tilewright.te.hybrid.operation import HybridOp
from tilewright.te.hybrid.script import HybridFunction, script
from tilewright.te.schedule import hybrid_stmt as _hybrid_stmt

_ = _hybrid_stmt  # registers how a hybrid operation is lowered

__all__ = ["HybridFunction", "HybridModule", "HybridOp", "build", "script"]
