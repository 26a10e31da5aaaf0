"""Differences of a value and a multiple of its quotient, truncated and rounded down: the forms, and their values."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.arith import Analyzer, ConstIntBound
from tilewright.ir.expr import (
    LT,
    Add,
    Broadcast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Sub,
    Var,
)
from tilewright.ir.operators import const, floordiv, floormod, maximum, minimum, truncdiv, truncmod

x, y, z = Var("x"), Var("y"), Var("z")
vector = Var("v", "int32x2")


@pytest.mark.parametrize(("quotient", "remainder"), [(floordiv, floormod), (truncdiv, truncmod)])
def test_a_value_less_a_multiple_of_a_quotient(quotient: Any, remainder: Any, same: Any) -> None:
    """``x - ((x + z) / c) * c`` is a remainder less ``z``, on either side and scaled; also in comparisons."""
    table = [
        (x - quotient(x + z, 5) * 5, remainder(x + z, 5) - z),
        (quotient(x + z, 5) * 5 - x, z - remainder(x + z, 5)),
        (x - quotient(x - z, 5) * 5, remainder(x - z, 5) + z),
        (x * 5 - quotient(x + z, 2) * 10, (remainder(x + z, 2) - z) * 5),
        (quotient(x, 3) * 6 - x * 2, remainder(x, 3) * (-2)),
        ((x + y) - quotient(x, 4) * 4, remainder(x, 4) + y),
        ((x - y) - quotient(x, 4) * 4, remainder(x, 4) - y),
        (quotient(x, 4) * 4 < x + y, LT(const(0), remainder(x, 4) + y)),
        (quotient(x, 4) * 4 < x - y, LT(y, remainder(x, 4))),
        (quotient(x + 2, 4) * 4 >= x, remainder(x + 2, 4) <= 2),
        (quotient(x + 2, 4) * 4 >= x + y, remainder(x + 2, 4) + y <= 2),
        (minimum(quotient(x + 3, 4) * 4, x), x),
        (maximum(quotient(x + 3, 4) * 4, x), quotient(x + 3, 4) * 4),
        (minimum(quotient(x, 10), quotient(y, 10)), quotient(minimum(x, y), 10)),
        (maximum(quotient(x, -10), quotient(y, -10)), quotient(minimum(x, y), -10)),
    ]
    for data, expected in table:
        found = Analyzer().rewrite_simplify(data)
        assert same(found, expected), f"{data} became {found}, not {expected}"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (x - floordiv(x - 6, 5) * 5, floormod(x + 4, 5) + 6),
        (x - truncdiv(x, -5) * (-5), truncmod(x, 5)),
        (truncmod(x * 10, -2), const(0)),
        (truncdiv(x, 3) >= 0, const(-2) <= x),
        (truncdiv(x, 2) >= -1, const(-3) <= x),
        (truncdiv(x, 2) <= -1, x <= -2),
        (floordiv(floormod(x, 2) + 9, 2) * 2 + floormod(floormod(x, 2) + 1, 2), floormod(x, 2) + 9),
        (floordiv((x + y) + z, x), floordiv(y + z, x) + 1),
        (floordiv(y + (z + x), x), floordiv(y + z, x) + 1),
        (floordiv(y + x * z, z), floordiv(y, z) + x),
        (minimum(minimum(minimum(minimum(x, y), z), x * 2), y), minimum(minimum(minimum(x, y), z), x * 2)),
        (
            maximum(maximum(vector, Broadcast(x, 2)), Broadcast(y, 2)),
            maximum(vector, Broadcast(maximum(x, y), 2)),
        ),
    ],
    ids=lambda expr: str(expr),
)
def test_other_forms(data: Any, expected: Any, same: Any) -> None:
    """Divisors and dividends of either sign, symbols, chains of extrema, vectors."""
    found = Analyzer().rewrite_simplify(data)
    assert same(found, expected), f"{data} became {found}, not {expected}"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (truncdiv(x + 5, 3) - truncdiv(x, 3), truncdiv(truncmod(x, 3) + 5, 3)),
        (truncdiv(x + 5, 3) - truncdiv(x + 1, 3), truncdiv(truncmod(x + 1, 3) + 4, 3)),
        (truncdiv(x + y, x), truncdiv(y, x) + 1),
        (truncdiv(y + x * z, z), truncdiv(y, z) + x),
        (truncdiv(y + x * 4, 2), truncdiv(y, 2) + x * 2),
        (truncmod(y - (0 - x) * 10, 2), truncmod(y, 2)),
        (truncdiv(Ramp(x * 4, 1, 4), Broadcast(8, 4)), Broadcast(truncdiv(x, 2), 4)),
        (truncmod(Ramp(x * 8 + 1, 15, 4), Broadcast(8, 4)), truncmod(Ramp(1, 15, 4), Broadcast(8, 4))),
    ],
    ids=lambda expr: str(expr),
)
def test_forms_of_what_is_not_negative(data: Any, expected: Any, same: Any) -> None:
    """Truncated quotients obey the rules of the floor where nothing is negative."""
    analyzer = Analyzer()
    for variable in (x, y, z):
        analyzer.update(variable, ConstIntBound(0, 1000))
    found = analyzer.rewrite_simplify(data)
    assert same(found, expected), f"{data} became {found}, not {expected}"


SMALL = st.integers(-7, 7).map(lambda value: IntImm("int32", value))
LEAVES = st.one_of(st.sampled_from([x, y, z]), SMALL)
SUMS = st.builds(lambda kind, a, b: kind(a, b), st.sampled_from([Add, Sub]), LEAVES, LEAVES)
DIVISORS = st.sampled_from([2, 3, 4, 5, -3])


@st.composite
def _pieces(draw: Any) -> Any:
    """A quotient times a multiple of its divisor, less, plus, compared with or bounded by its own parts."""
    dividend, divisor, scale = draw(SUMS), draw(DIVISORS), draw(st.sampled_from([1, 2, -1]))
    quotient = draw(st.sampled_from([FloorDiv, Div]))(dividend, IntImm("int32", divisor))
    scaled = Mul(quotient, IntImm("int32", divisor * scale))
    part = draw(st.sampled_from([dividend, dividend.a, dividend.b, Add(dividend.a, y), Sub(dividend.a, z)]))
    part = Mul(part, IntImm("int32", scale)) if draw(st.booleans()) else part
    rest = draw(st.sampled_from([FloorMod, Mod]))(part, IntImm("int32", divisor))
    pair = draw(
        st.sampled_from([(scaled, part), (part, scaled), (scaled, rest), (quotient, Add(part, part))])
    )
    return draw(st.sampled_from([Sub, Add, Min, Max, LT, FloorMod, Mod]))(*pair)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(expr=_pieces(), positive=st.booleans())
def test_values_are_kept(expr: Any, positive: bool, evaluate: Any) -> None:
    """At every point of a box around zero, or on the side of it that the analyzer is told of."""
    analyzer = Analyzer()
    box = range(5) if positive else range(-7, 8, 2)
    for variable in (x, y, z):
        analyzer.update(variable, ConstIntBound(min(box), max(box)))
    made = analyzer.rewrite_simplify(expr)
    for point in product(box, box, (min(box), 1, 2)):
        values = dict(zip((x, y, z), point, strict=True))
        try:
            wanted = evaluate(expr, values)
        except ArithmeticError:
            continue
        assert evaluate(made, values) == wanted, (str(expr), str(made), values)
