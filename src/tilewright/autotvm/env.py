"""The settings of AutoTVM that hold for the whole process."""

from __future__ import annotations

from typing import ClassVar


class AutotvmGlobalScope:
    """``in_tuning``: a tuner is measuring; ``silent``: no warnings about workloads without records."""

    current: ClassVar[AutotvmGlobalScope | None] = None

    def __init__(self) -> None:
        self._old = AutotvmGlobalScope.current
        AutotvmGlobalScope.current = self
        self.in_tuning = False
        self.silent = False

    def deep_copy(self, global_scope: AutotvmGlobalScope) -> None:
        """Take another scope's settings."""
        self._old = AutotvmGlobalScope.current
        self.in_tuning = global_scope.in_tuning
        self.silent = global_scope.silent


GLOBAL_SCOPE = AutotvmGlobalScope()


def reset_global_scope(global_scope: AutotvmGlobalScope) -> None:
    """Take the settings of a scope, in a worker process for instance."""
    GLOBAL_SCOPE.deep_copy(global_scope)
    AutotvmGlobalScope.current = global_scope
