"""The canonical simplifier: sums, splits that join, what divides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.arith import Analyzer, ConstIntBound
from tilewright.ir.expr import Cast, Select, Var
from tilewright.ir.operators import (
    const,
    equal,
)
from tilewright.ir.operators import (
    floordiv as fld,
)
from tilewright.ir.operators import (
    floormod as flm,
)
from tilewright.ir.operators import (
    maximum as tmax,
)
from tilewright.ir.operators import (
    minimum as tmin,
)
from tilewright.ir.operators import (
    truncdiv as tdiv,
)
from tilewright.ir.operators import (
    truncmod as tmod,
)
from tilewright.tir.functor import substitute

x, y, z, n = (Var(name) for name in "xyzn")


def _check(same: Any, data: Any, expected: Any, bounds: dict[Any, tuple[int, int]]) -> None:
    analyzer = Analyzer()
    for variable, bound in bounds.items():
        analyzer.update(variable, ConstIntBound(*bound))
    found = analyzer.canonical_simplify(data)
    assert same(found, expected), f"{data} became {found}, not {expected}"


@pytest.mark.parametrize(
    ("data", "expected", "bounds"),
    [
        (x * 3 - 1 + y - x * 2, x + y - 1, {}),
        ((10 - x) * 5 + x, 50 - x * 4, {}),
        (3 * (x + y), x * 3 + y * 3, {}),
        (x - x, const(0), {}),
        (0 - x - 3, 0 - x - 3, {}),
        (fld(x, 4) * 4 + flm(x, 4), x, {}),
        # What splits join to is a sum, of which other terms may be parts.
        (fld(x * 128 + y, 36) * 36 + flm(x * 128 + y, 36) - x * 128, y, {}),
        (fld(x * 2 + 7 + y, 6) * 6 + flm(x * 2 + 7 + y, 6) - y * 2, x * 2 + 7 - y, {}),
        (fld(fld(flm(x, 16), 2) * 2, 6), fld(flm(x, 16), 6), {}),
        # Truncated splits of one term join whatever its sign.
        (tdiv(x, 3) * 3 + tmod(x, 3), x, {}),
        (tdiv(x, 6) * 6 + tmod(tdiv(x, 3), 2) * 3 + tmod(x, 3), x, {}),
        (tmod(x * 8, 16), tmod(x, 2) * 8, {}),
        (tdiv(x * 48 + 16, 16), x * 3 + 1, {}),
        (tdiv(tdiv(x, 2), 3), tdiv(x, 6), {}),
        (tdiv(x, 4), const(0), {x: (-3, 3)}),
        (flm(x, 4) + fld(x, 4) * 4 + y, x + y, {}),
        (fld(flm(x, 16), 4) * 4 + flm(x, 4), flm(x, 16), {}),
        (x - fld(x, 4) * 4, flm(x, 4), {}),
        (x - flm(x, 4), fld(x, 4) * 4, {}),
        (fld(fld(x, 4), 6), fld(x, 24), {}),
        (flm(fld(x, 4), 6), fld(flm(x, 24), 4), {}),
        (fld(x * 4 + y, 2), x * 2 + fld(y, 2), {}),
        (fld(x * 64 + y, 64), x, {y: (0, 63)}),
        (flm(x * 64 + y, 64), y, {y: (0, 63)}),
        (fld(x * 32 + y * 4 + z, 64), fld(x, 2), {y: (0, 7), z: (0, 3)}),
        (flm(x * 32 + y * 4 + z, 64), flm(x, 2) * 32 + y * 4 + z, {y: (0, 7), z: (0, 3)}),
        (fld(x * 6 + y, 4), fld(x * 6 + y, 4), {}),
        (flm(flm(x, 8), 3), flm(flm(x, 8), 3), {}),
        (flm(flm(x, 8), 4), flm(x, 4), {}),
        (fld(flm(x, 8), 8), const(0), {}),
        (tdiv(x, 4) * 4 + tmod(x, 4), x, {x: (0, 100)}),
        (tdiv(x * 64 + y, 64), x, {x: (0, 100), y: (0, 63)}),
        (tdiv(x * 64 - y, 64), tdiv(x * 64 - y, 64), {x: (0, 100), y: (0, 63)}),
        (x * y - y * x, const(0), {}),
        ((x + y) * n + 3 - (x + y) * n, const(3), {}),
        (tmin(x, y) * 2 - tmin(x, y), tmin(x, y), {}),
        (tmax(x + 1 - 1, y), tmax(x, y), {}),
        (Select(x + 1 > x, y + y, z), y * 2, {}),
        (Cast("int64", x + 1 - x), const(1, "int64"), {}),
        (x * 4 + y < x * 4 + z, y < z, {}),
        (x * 4 + 8 < y * 4 + 3, x < y + (-1), {}),
        (equal(x * 2 + y * 4, 3), const(False), {}),
        (x + y + z < z + x, y < 0, {}),
    ],
    ids=str,
)
def test_canonical_form(data: Any, expected: Any, bounds: Any, same: Any) -> None:
    """Each expression has the expected canonical form, to the letter."""
    _check(same, data, expected, bounds)


def test_fused_index_round_trip(same: Any) -> None:
    """Splitting a fused index gives back its parts."""
    bounds = {x: (0, 7), y: (0, 15), z: (0, 3)}
    fused = (x * 16 + y) * 4 + z
    _check(same, fld(fused, 64), x, bounds)
    _check(same, flm(fld(fused, 4), 16), y, bounds)
    _check(same, flm(fused, 4), z, bounds)


def test_canonical_forms_are_stable(same: Any) -> None:
    """Making a canonical expression canonical changes nothing."""
    analyzer = Analyzer()
    for expr in (x * 3 - y + 7, fld(flm(x, 24), 4) * 2 + y, tmin(x * 2, y) - fld(x + 5, 3)):
        once = analyzer.canonical_simplify(expr)
        assert analyzer.canonical_simplify(once) is once
        assert same(Analyzer().canonical_simplify(once), once)


@pytest.mark.parametrize("extent", [49, 56, 3136])
def test_parts_of_a_split_and_fused_axis_join_though_each_was_simplified_alone(extent: int) -> None:
    """Where ``64 * x + y`` was reduced under ``%`` and not under ``//``, the two are still parts of one index."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 1000))
    analyzer.update(y, ConstIntBound(0, 63))
    index = x * 64 + y
    parts = analyzer.simplify(fld(index, extent)), analyzer.simplify(flm(index, extent))
    assert str(analyzer.simplify(parts[0] * extent + parts[1])) == str(analyzer.simplify(index))


def test_a_remainder_of_another_residue_does_not_join() -> None:
    """``(64 * x + y) // 56 * 56 + (9 * x + y) % 56`` is not an index: 64 and 9 differ by no multiple of 56."""
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 1000))
    analyzer.update(y, ConstIntBound(0, 63))
    simplified = analyzer.simplify(fld(x * 64 + y, 56) * 56 + flm(x * 9 + y, 56))
    assert "%" in str(simplified)


@pytest.mark.parametrize(
    "make",
    [
        lambda i: tdiv(tmod(i, 12), 4),
        lambda i: tdiv(tdiv(tmod(i, 16), 2) * 2, 6),
        lambda i: tmod(tdiv(tmod(i, 20), 2) * 2, 4),
        lambda i: tdiv(tmod(i * 6, 24), 8) + tmod(i * 6, 8),
        lambda i: tdiv(i * 3, 12) * 4 + tmod(i, 4) - tmod(tdiv(i, 2), 2) * 2,
        lambda i: tmod(tdiv(i, 3), 2) * 3 + tmod(i, 3) - tmod(i, 6),
    ],
)
def test_truncated_division_of_negative_numbers_keeps_its_value(make: Callable[[Any], Any]) -> None:
    """For every number from -60 to 60."""
    simplified = Analyzer().canonical_simplify(make(x))
    for number in range(-60, 61):
        values = [
            Analyzer().canonical_simplify(substitute(expr, {x: const(number)}))
            for expr in (make(x), simplified)
        ]
        assert values[0].value == values[1].value, (number, simplified)
