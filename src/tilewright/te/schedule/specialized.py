"""Conditions under which a computation is specialised: facts about sizes that schedules may rely on."""

from __future__ import annotations

from contextvars import ContextVar, Token

from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ScheduleError

_current: ContextVar[tuple[SpecializedCondition, ...]] = ContextVar("tilewright_te_specialized", default=())


class SpecializedCondition:
    """Within ``with SpecializedCondition(conditions)``, ``current`` gives these conditions."""

    def __init__(self, conditions: PrimExpr | list[PrimExpr]) -> None:
        self.clauses = tuple(conditions) if isinstance(conditions, (list, tuple)) else (conditions,)
        for condition in self.clauses:
            if not isinstance(condition, PrimExpr) or not condition.dtype.is_bool:
                raise ScheduleError(f"a specialised condition is a bool expression, not {condition!r}")
        self._token: Token[tuple[SpecializedCondition, ...]] | None = None

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The innermost conditions, or None."""
        stack = _current.get()
        return stack[-1] if stack else None

    def __enter__(self) -> SpecializedCondition:
        self._token = _current.set((*_current.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
