"""Linear forms in given variables, and bounds from conjunctions."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.arith import detect_clip_bound, detect_linear_equation, neg_inf, pos_inf
from tilewright.ir.expr import Var
from tilewright.ir.operators import call, equal, floordiv, logical_and

a, b, c = (Var(name) for name in "abc")


@pytest.mark.parametrize(
    ("expr", "variables", "expected"),
    [
        (a * 4 + b * 6 + 7, [a], [4, b * 6 + 7]),
        (a * 4 * (a + 1) + b * 6 + 7, [a], None),
        (a * 4 + (a + 1) + b * 6 + 7, [a], [5, b * 6 + 8]),
        (a * b + 7, [a], [b, 7]),
        (b * 7, [a], [0, b * 7]),
        (c, [], [c]),
        (a * 4 + b * 3 + c, [a, b], [4, 3, c]),
        (a * b, [a, b], None),
        (floordiv(a, 2), [a], None),
        (3 - a, [a], [-1, 3]),
        (floordiv(b, 2) - a * b, [a], [0 - b, floordiv(b, 2)]),
    ],
    ids=str,
)
def test_linear_equation(expr: Any, variables: Any, expected: Any, same: Any) -> None:
    """Coefficients and base, or nothing at all."""
    found = detect_linear_equation(expr, variables)
    assert len(found) == (0 if expected is None else len(expected)), found
    assert all(same(part, wanted) for part, wanted in zip(found, expected or [], strict=True)), found


@pytest.mark.parametrize(
    ("condition", "variables", "expected"),
    [
        (logical_and(a * 1 < b * 6, a - 1 > 0), [a], [2, b * 6 - 1]),
        (logical_and(a * 1 < b * 6, a - 1 > 0), [a, b], None),
        (logical_and(a + c * 10 <= 20, b - 1 > 0), [a, b], [neg_inf(), 20 - c * 10, 2, pos_inf()]),
        (logical_and(a < 10, a < 7), [a], [neg_inf(), 6]),
        (equal(a, 4), [a], [4, 4]),
        (5 - a < 3, [a], [3, pos_inf()]),
        (a * 3 < 9, [a], None),
        (call("likely", "bool", [a < 9]), [a], [neg_inf(), 8]),
    ],
    ids=str,
)
def test_clip_bound(condition: Any, variables: Any, expected: Any, same: Any) -> None:
    """Lower and upper end of each variable, or nothing at all."""
    found = detect_clip_bound(condition, variables)
    assert len(found) == (0 if expected is None else len(expected)), found
    assert all(same(part, wanted) for part, wanted in zip(found, expected or [], strict=True)), found
