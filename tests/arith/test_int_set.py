"""Intervals: unions, intersections, ranges, and evaluation over sets with symbolic ends."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.arith import (
    Analyzer,
    IntervalSet,
    IntSet,
    estimate_region_lower_bound,
    eval_int_set,
    eval_set,
    intersect,
    neg_inf,
    pos_inf,
    relax,
    union_lower_bound,
    union_sets,
)
from tilewright.ir.expr import Broadcast, Cast, Ramp, Range, Select, SizeVar, Var
from tilewright.ir.operators import (
    call,
    const,
    floordiv,
    floormod,
    logical_and,
    logical_not,
    maximum,
    minimum,
    truncdiv,
    truncmod,
)
from tilewright.support.errors import TilewrightError

x, y, o, n, m = Var("x"), Var("y"), Var("o"), SizeVar("n"), SizeVar("m")


def test_kinds_of_sets() -> None:
    """Nothing, everything, single points and bounded intervals know what they are."""
    assert IntSet.nothing().is_nothing() and not IntSet.nothing().is_everything()
    assert IntSet.everything().is_everything() and not IntSet.everything().is_bounded
    assert IntSet.single_point(x).is_single_point and IntSet.single_point(x).point_value() is x
    assert IntervalSet(3, 3).is_single_point and not IntervalSet(3, 4).is_single_point
    half = IntervalSet(0, pos_inf())
    assert half.has_lower_bound and not half.has_upper_bound and not half.is_everything()
    with pytest.raises(TilewrightError, match="not one point"):
        IntervalSet(0, 3).point_value()


def test_lanes_of_a_vector(same: Any) -> None:
    """A ramp covers its first to its last lane, whichever is the smaller."""
    up = IntSet.vector(Ramp(x, const(2), 4))
    assert isinstance(up, IntervalSet) and same(up.min_value, x) and same(up.max_value, x + 6)
    down = IntSet.vector(Ramp(x, const(-2), 4))
    assert isinstance(down, IntervalSet) and same(down.min_value, x - 6) and same(down.max_value, x)
    assert IntSet.vector(Broadcast(x, 4)).is_single_point  # type: ignore[attr-defined]


def test_union_and_intersection(same: Any) -> None:
    """Constant and symbolic ends; provably empty intersections are nothing."""
    both = union_sets([IntervalSet(0, 3), IntervalSet(2, 9), IntSet.nothing()])
    assert same(both.min_value, 0) and same(both.max_value, 9)
    symbolic = IntervalSet(x, x + 3).union(IntervalSet(x + 2, x + 9))
    assert same(symbolic.min_value, x) and same(symbolic.max_value, x + 9)
    assert intersect([IntervalSet(0, 3), IntervalSet(5, 9)]).is_nothing()
    common = IntervalSet(0, pos_inf()).intersect(IntervalSet(neg_inf(), 9))
    assert same(common.min_value, 0) and same(common.max_value, 9)
    assert union_sets([]).is_nothing()


def test_union_lower_bound_has_no_gaps(same: Any) -> None:
    """Touching sets join; a set beyond a gap is left out."""
    joined = union_lower_bound([IntervalSet(0, 3), IntervalSet(4, 9)])
    assert same(joined.min_value, 0) and same(joined.max_value, 9)
    kept = union_lower_bound([IntervalSet(0, 3), IntervalSet(5, 9)])
    assert same(kept.min_value, 0) and same(kept.max_value, 3)
    assert union_lower_bound([IntervalSet(0, pos_inf()), IntervalSet(neg_inf(), -1)]).is_everything()
    assert union_lower_bound([]).is_nothing()


def test_cover_range(same: Any) -> None:
    """A bounded set is a range; an open one gives the default."""
    default = Range(0, n)
    found = IntervalSet(o * 4, o * 4 + 3).cover_range(default)
    assert same(found.min, o * 4) and same(found.extent, 4)
    assert IntervalSet(0, pos_inf()).cover_range(default) is default


TILE = {x: IntervalSet(o * 16, o * 16 + 15)}
GRID = {x: Range(0, n), y: Range(0, 4)}


@pytest.mark.parametrize(
    ("expr", "domains", "low", "high"),
    [
        (x, TILE, o * 16, o * 16 + 15),
        (floordiv(x, 4), TILE, o * 4, o * 4 + 3),
        (floormod(x, 4), TILE, 0, 3),
        (floormod(x, 16), TILE, 0, 15),
        (floormod(x, 32), TILE, floormod(o, 2) * 16, floormod(o, 2) * 16 + 15),
        (floormod(x, 4), {x: IntervalSet(o * 4 + 1, o * 4 + 2)}, 1, 2),
        (x * -2 + 1, TILE, 0 - o * 32 - 29, 1 - o * 32),
        (x - floordiv(x, 16) * 16, TILE, 0, 15),
        (minimum(x, n), TILE, minimum(o * 16, n), minimum(o * 16 + 15, n)),
        (maximum(x, 3), {x: IntervalSet(0, 9)}, 3, 9),
        (Ramp(x, const(1), 4), TILE, o * 16, o * 16 + 18),
        (x * 4 + y, GRID, 0, n * 4 - 1),
        (n - x, GRID, 1, n),
        (x * n, GRID, 0, (n - 1) * n),
        (x * y, GRID, 0, n * 3 - 3),
        (x + y, {x: IntervalSet(y, y + 2), y: IntervalSet(0, 3)}, 0, 8),
        (x - y, {x: IntervalSet(0, pos_inf()), y: IntervalSet(0, 3)}, -3, pos_inf()),
        (x * -1, {x: IntervalSet(0, pos_inf())}, neg_inf(), 0),
        (truncdiv(x, 4), {x: IntervalSet(-9, 9)}, -2, 2),
        (truncmod(x, 4), {x: IntervalSet(-9, 9)}, -3, 3),
        (truncmod(x, 4), {x: IntervalSet(0, 9)}, 0, 3),
        (floordiv(x, y), {x: IntervalSet(8, 20), y: IntervalSet(2, 4)}, 2, 10),
        (floordiv(x, n), {x: Range(0, n * m * 3)}, 0, m * 3 - 1),
        (floordiv(floordiv(x, n), m), {x: Range(0, n * m * 3)}, 0, 2),
        (floordiv(x, n), {x: Range(0, n + 1)}, neg_inf(), pos_inf()),
        (floormod(x, n), {x: Range(0, n * 3)}, 0, n - 1),
        (Select(x > 3, x, y), {x: IntervalSet(0, 9), y: IntervalSet(-1, 2)}, -1, 9),
        (call("if_then_else", "int32", [x > 3, x, const(12)]), {x: IntervalSet(0, 9)}, 0, 12),
        (call("likely", "bool", [x < 3]), {x: IntervalSet(0, 2)}, True, True),
        (Cast("int64", x), {x: IntervalSet(0, 9)}, const(0, "int64"), const(9, "int64")),
        (x < 3, {x: IntervalSet(0, 9)}, False, True),
        (x < n, GRID, True, True),
        (logical_not(x < n), GRID, False, False),
        (logical_and(x < n, y < 2), GRID, False, True),
        (x >= n, GRID, False, False),
        (n * 2, GRID, n * 2, n * 2),
    ],
    ids=str,
)
def test_evaluation(expr: Any, domains: Any, low: Any, high: Any, same: Any) -> None:
    """The interval of each expression is as tight as it can be, with simplified ends."""
    found = eval_int_set(expr, domains)
    assert same(found.min_value, low), f"{expr}: {found}"
    assert same(found.max_value, high), f"{expr}: {found}"


def test_what_cannot_be_followed_is_bounded_by_its_type(same: Any) -> None:
    """A byte loaded at an unknown place is a byte; an index is anything."""
    byte = Cast("int32", call("test_pure_load", "uint8", [x]))
    found = eval_int_set(byte, {x: Range(0, 4)})
    assert same(found.min_value, 0) and same(found.max_value, 255)
    assert eval_int_set(call("test_pure_load", "int32", [x]), {x: Range(0, 4)}).is_everything()


def test_relaxing_sets_and_ranges(same: Any) -> None:
    """The set that contains a set whatever the variable is."""
    found = relax(IntervalSet(o, o + 3), {o: Range(0, 5)})
    assert same(found.min_value, 0) and same(found.max_value, 7)
    whole = eval_set(Range.from_min_extent(o * 2, 4), {o: Range(0, 5)})
    assert same(whole.min_value, 0) and same(whole.max_value, 11)


def test_the_analyzer_uses_its_ranges(same: Any) -> None:
    """Without a map, variables run over what they are bound to."""
    analyzer = Analyzer()
    analyzer.bind(x, Range(0, n))
    found = analyzer.int_set(x * 2)
    assert same(found.min_value, 0) and same(found.max_value, n * 2 - 2)
    other = analyzer.int_set(x * 2, {x: IntervalSet(0, 3)})
    assert same(other.max_value, 6)


def test_region_lower_bound(same: Any) -> None:
    """A region that steps without gaps is touched whole; one with gaps, or no iterator map, gives None."""
    found = estimate_region_lower_bound([Range.from_min_extent(x * 8, 8), Range.from_min_extent(y, 2)],
                                        {x: Range(0, 4), y: Range(0, 3)}, True)  # fmt: skip
    assert found is not None
    assert same(found[0].min_value, 0) and same(found[0].max_value, 31)
    assert same(found[1].min_value, 0) and same(found[1].max_value, 3)
    assert estimate_region_lower_bound([Range.from_min_extent(x * 8, 4)], {x: Range(0, 4)}, True) is None
    assert estimate_region_lower_bound([Range.from_min_extent(x * x, 4)], {x: Range(0, 4)}, True) is None
    point = estimate_region_lower_bound([Range.from_min_extent(n, 4)], {x: Range(0, 4)}, True)
    assert point is not None and same(point[0].min_value, n) and same(point[0].max_value, n + 3)


def test_sets_in_a_wider_type_than_the_variable() -> None:
    """A quotient of their ends is computed in that type."""
    x, n = Var("x", "int32"), Var("n", "int64")
    found = eval_int_set(x // 4, {x: IntervalSet(n * 4, n * 4 + 7)})
    assert str(found.min_value) == "n" and str(found.max_value) == "n + T.int64(1)"
    assert eval_int_set(x % 4, {x: IntervalSet(n, n + 7)}) is not None
