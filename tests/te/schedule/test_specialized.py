"""Conditions that schedules may rely on."""

from __future__ import annotations

import pytest

from tilewright import te
from tilewright.support.errors import ScheduleError


def test_the_innermost_condition_is_current() -> None:
    """Conditions nest, and end with their block."""
    n, m = te.var("n"), te.var("m")
    assert te.SpecializedCondition.current() is None
    with te.SpecializedCondition(n > 3) as outer:
        assert te.SpecializedCondition.current() is outer
        with te.SpecializedCondition([n > 3, m < 4]) as inner:
            assert te.SpecializedCondition.current() is inner and len(inner.clauses) == 2
        assert te.SpecializedCondition.current() is outer
    assert te.SpecializedCondition.current() is None


def test_only_conditions() -> None:
    """A number is none."""
    with pytest.raises(ScheduleError, match="bool expression"):
        te.SpecializedCondition(te.var("n"))
