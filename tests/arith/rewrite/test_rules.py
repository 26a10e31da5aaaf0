"""The rules of the rewriting simplifier, one table a family: what an expression becomes, to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.arith import Analyzer, ConstIntBound
from tilewright.ir.expr import LE, LT, Broadcast, Cast, IntImm, Let, Ramp, Select, Var
from tilewright.ir.operators import (
    call,
    const,
    equal,
    not_equal,
)
from tilewright.ir.operators import (
    floordiv as fld,
)
from tilewright.ir.operators import (
    floormod as flm,
)
from tilewright.ir.operators import (
    logical_and as land,
)
from tilewright.ir.operators import (
    logical_not as lnot,
)
from tilewright.ir.operators import (
    logical_or as lor,
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

x, y, z = Var("x"), Var("y"), Var("z")
f = Var("f", "float32")
b = Var("b", "bool")
TRUE, FALSE = const(True), const(False)


def check(same: Any, data: Any, expected: Any, **bounds: tuple[int, int]) -> None:
    """Simplify under bounds given by the variables' names."""
    analyzer = Analyzer()
    for name, (low, high) in bounds.items():
        analyzer.update({"x": x, "y": y, "z": z}[name], ConstIntBound(low, high))
    found = analyzer.rewrite_simplify(data)
    assert same(found, expected), f"{data} became {found}, not {expected}"


ADDITION = [
    (x + (y - x), y),
    (x - (y + 1) + (y + 1), x),
    ((x - 10) + (10 - z), x - z),
    ((x - y) + (z - x), z - y),
    (tmin(x, y - z) + z, tmin(x + z, y)),
    (tmin(x - z, y) + z, tmin(x, y + z)),
    (tmax(x, y - 10) + 10, tmax(x + 10, y)),
    (tmax(x - 11, y) + 11, tmax(x, y + 11)),
    (tmax(x, y * 2) + tmin(x, y * 2), x + y * 2),
    (tmin(x, y * 2) + tmax(x, y * 2), x + y * 2),
    (tmax(x, y + 2) + (-2), tmax(x + (-2), y)),
    (tmin(x + 2, y + 3) + (-2), tmin(x, y + 1)),
    (tmax(const(0), 1 - x * 4) + x * 4, tmax(x * 4, const(1))),
    (tmin(2 - x * 4, const(0)) + x * 4, tmin(x * 4, const(2))),
    (x * y + x * 10, x * (y + 10)),
    (y * x + 10 * x, x * (y + 10)),
    ((2 * z) + tmin(x, y - (2 * z)), tmin(x + (z * 2), y)),
    (y * x + x, x * (y + 1)),
    ((x + 10) + 13, x + 23),
    ((x + 10) + (13 + z), x + z + 23),
    (x + 3 + y, x + y + 3),
    ((3 - y) + x, x - y + 3),
    (x + 2 + 3 + 4 + x, x * 2 + 9),
    (x + 2 + 3 + 4 + x * 3, x * 4 + 9),
    (y * flm(x, 8) + 10 * flm(x, 8), flm(x, 8) * (y + 10)),
    (fld(x, 8) * 8 + flm(x, 8), x),
    (tdiv(x, 8) * 8 + tmod(x, 8), x),
    (Select(b, x, y) + Select(b, z, x), Select(b, x + z, y + x)),
]

SUBTRACTION = [
    (x + y - y, x),
    (x + y - x, y),
    (x - (y + x), 0 - y),
    (x - (x + y), 0 - y),
    (tmin(x, y) - x, tmin(y - x, const(0))),
    (tmin(x, y) - y, tmin(x - y, const(0))),
    (tmax(x, y) - x, tmax(y - x, const(0))),
    (x - tmin(x, y), tmax(x - y, const(0))),
    (y - tmin(x, y), tmax(y - x, const(0))),
    (x - tmax(x, y), tmin(x - y, const(0))),
    (tmin(x + y, z) - x, tmin(y, z - x)),
    (tmin(z, x + y) - x, tmin(z - x, y)),
    (tmax(x + 1, y + 2) - tmax(x, y + 1), const(1)),
    (tmin(x, y) - tmin(y, x), const(0)),
    (x * 2 - x, x),
    (x - x * 3, x * -2),
    (x * y - x * z, x * (y - z)),
    ((x - 10) - (y - 12), x - y + 2),
    (x - (y - z), x + z - y),
    (5 - (x + 2), 3 - x),
    (x - fld(x, 4) * 4, flm(x, 4)),
    (fld(x, 4) * 4 - x, 0 - flm(x, 4)),
    (x * 4 - fld(x, 6) * 24, flm(x, 6) * 4),
    (fld(x + 5, 3) - fld(x, 3), fld(flm(x, 3) + 5, 3)),
    (x - tdiv(x, 4) * 4, tmod(x, 4)),
    (Select(b, x, y) - y, Select(b, x - y, const(0))),
    (x - y * -3, x + y * 3),
]

MULTIPLICATION = [
    ((x + 2) * 3, x * 3 + 6),
    ((x * 2) * 3, x * 6),
    (tmin(x, y) * tmax(x, y), x * y),
    (tmax(x, y) * tmin(x, y), x * y),
    ((x - y) * (-2), (y - x) * 2),
    (x * (3 * y), x * y * 3),
    (x * 0, const(0)),
]

FLOOR_DIVISION = [
    (fld(fld(x, 2), 3), fld(x, 6)),
    (fld(fld(x, 2) + 1, 3), fld(x + 2, 6)),
    (fld(x - flm(x, 21), 21), fld(x, 21)),
    (fld(x * 2, 4), fld(x, 2)),
    (fld(x * 4, 2), x * 2),
    (fld(x * 8 + 7, 16), fld(x, 2)),
    (fld(x * 8 + 39, 16), fld(x, 2) + 2),
    (fld(x * 8 - 1, 16), fld(x + (-1), 2)),
    (fld(x * 4 + y, 2), x * 2 + fld(y, 2)),
    (fld(tmin(x * 6, y), 2), tmin(x * 3, fld(y, 2))),
    (fld(tmax(x, y * 4), 2), tmax(fld(x, 2), y * 2)),
    (fld(x + y * 4, 2), y * 2 + fld(x, 2)),
    (fld(y * 4 - x, 4), y + fld(0 - x, 4)),
    (fld(x + 8, 4), fld(x, 4) + 2),
    (fld(x, x), const(1)),
    (fld(x * y, x), y),
    (fld(x * y + z, x), y + fld(z, x)),
    (fld(x, -1), 0 - x),
]

FLOOR_MODULUS = [
    (flm(x * 10, 2), const(0)),
    (flm(x * 10 + y, 2), flm(y, 2)),
    (flm(x * 10 + 1, 2), const(1)),
    (flm(x + 10, 2), flm(x, 2)),
    (flm(x + y * 10, 2), flm(x, 2)),
    (flm(x * 10 + 1 + y * 2 + 2, 2), const(1)),
    (flm(flm(x, 8), 4), flm(x, 4)),
    (flm(x * 2, 4), flm(x, 2) * 2),
    (flm(x * 9, 8), flm(x, 8)),
    (flm(x, x), const(0)),
    (flm(x * y, y), const(0)),
    (flm(x * y + z, y), flm(z, y)),
]

MIN_MAX = [
    (tmin(x, y) + 0, tmin(x, y)),
    (tmin(x + 11, x + 100), x + 11),
    (tmin(x - 11, 100 + x), x + (-11)),
    (tmin(tmax(x, y), x), x),
    (tmin(tmax(x, y), y), y),
    (tmin(x, tmax(x, y)), x),
    (tmin(tmin(x, y), x), tmin(x, y)),
    (tmin(tmax(x, y), tmin(x, y)), tmin(x, y)),
    (tmin(tmin(x, 1), 10), tmin(x, const(1))),
    (tmin(tmax(x, y), tmax(x, z)), tmax(tmin(y, z), x)),
    (tmin(tmin(x, y), tmin(x, z)), tmin(tmin(y, z), x)),
    (tmin(y + x, x + z), tmin(y, z) + x),
    (tmin(x - y, x - z), x - tmax(y, z)),
    (tmin(y - x, z - x), tmin(y, z) - x),
    (tmin(x * 2, y * 2), tmin(x, y) * 2),
    (tmin(x * -2, y * -2), tmax(x, y) * -2),
    (tmin(fld(x, 10), fld(y, 10)), fld(tmin(x, y), 10)),
    (tmin(fld(x, -10), fld(y, -10)), fld(tmax(x, y), -10)),
    (tmin(x * 3, 9), tmin(x, const(3)) * 3),
    (tmin(3 - x, 2), 3 - tmax(x, const(1))),
    (tmin(tmin(x, 1), y), tmin(tmin(x, y), const(1))),
    (tmin(fld(x + 3, 4) * 4, x), x),
    (tmax(fld(x + 3, 4) * 4, x), fld(x + 3, 4) * 4),
    (tmin(fld(x, 4) * 4, x), fld(x, 4) * 4),
    (tmax(Select(b, x, y), Select(b, z, y)), Select(b, tmax(x, z), y)),
    (tmax(5, x), tmax(x, const(5))),
]

COMPARISON = [
    (equal(x * 10, 0), equal(x, 0)),
    (equal(x + 3, 5), equal(x, 2)),
    (equal(5 - x, 2), equal(x, 3)),
    (equal(x * 2, 5), FALSE),
    (equal(x * y, 0), lor(equal(x, 0), equal(y, 0))),
    (equal(x + y, x + z), equal(y, z)),
    (not_equal(x, x + 1), TRUE),
    (x + y < x + z, y < z),
    (x - y < x - z, z < y),
    (y - x < z - x, y < z),
    (x < x + z, LT(const(0), z)),
    (x + 1 < y, x < y + (-1)),
    (x * 3 < 10, x < 4),
    (x * 3 < 9, x < 3),
    (x * -3 < 9, LT(const(-3), x)),
    (x * 4 < y * 4, x < y),
    (x * -4 < y * -4, y < x),
    (fld(x, 4) < 3, x < 12),
    (LT(const(3), fld(x, 4)), LT(const(15), x)),
    (fld(x, 4) * 4 < x, LT(const(0), flm(x, 4))),
    (tmin(x, 11) < 10, x < 10),
    (tmax(8, x) > 10, LT(const(10), x)),
    (tmin(x, y) < z, lor(x < z, y < z)),
    (tmax(x, y) < z, land(x < z, y < z)),
    (z < tmin(x, y), land(z < x, z < y)),
    (x - 3 >= 4, LE(const(7), x)),
    (Select(b, const(1), const(0)) > 0, b),
    (equal(Select(b, const(1), const(0)), 0), lnot(b)),
]

LOGIC = [
    (land(b, lnot(b)), FALSE),
    (lor(b, lnot(b)), TRUE),
    (land(x < y, x < y), x < y),
    (land(x < 3, x > 5), FALSE),
    (land(x < 3, x < 5), x < 3),
    (lor(x < 3, x < 5), x < 5),
    (lor(x < 6, x > 4), TRUE),
    (land(equal(x, 3), not_equal(x, 4)), equal(x, 3)),
    (land(equal(x, 3), equal(x, 4)), FALSE),
    (land(x < y, y <= x), FALSE),
    (lnot(land(x < y, b)), lor(y <= x, lnot(b))),
    (Select(x < 3, Select(x < 5, y, z), z), Select(x < 3, y, z)),
    (Select(x < 3, x < 4, b), Select(x < 3, TRUE, b)),
    (Select(TRUE, x, y), x),
    (Select(b, x, x), x),
]

VECTORS = [
    (Ramp(x, const(1), 4) + Ramp(y, const(2), 4), Ramp(x + y, const(3), 4)),
    (Ramp(x, const(1), 2) + y, Ramp(x + y, const(1), 2)),
    (y + Ramp(x, const(1), 2), Ramp(y + x, const(1), 2)),
    (y.astype("int32x2") + x.astype("int32x2"), (y + x).astype("int32x2")),
    (Ramp(x, const(4), 4) - Ramp(y, const(2), 4), Ramp(x - y, const(2), 4)),
    (Ramp(x, const(4), 4) * 2, Ramp(x * 2, const(8), 4)),
    (fld(Ramp(x, const(4), 4), 2), Ramp(fld(x, 2), const(2), 4)),
    (fld(Ramp(x * 8, const(1), 4), 4), Broadcast(x * 2, 4)),
    (fld(Ramp(x * 8 + 15, const(1), 4), 4), fld(Ramp(x * 8 + 15, const(1), 4), 4)),
    (flm(Ramp(x * 8 + 1, const(1), 4), 4), flm(Ramp(const(1), const(1), 4), 4)),
    (flm(Ramp(x * 8 + 1, const(2), 2), 8), Ramp(const(1), const(2), 2)),
    (flm(Ramp(x, const(8), 4), 4), Broadcast(flm(x, 4), 4)),
    (Ramp(x, const(0), 4), Broadcast(x, 4)),
]

OTHERS = [
    (Cast("int32", Cast("int64", x)), x),
    (Cast("int64", const(3)), const(3, "int64")),
    (call("likely", "bool", [x < x + 1]), TRUE),
    (call("if_then_else", "int32", [x < x + 1, y, z]), y),
    (
        call("if_then_else", "int32", [x < 3, tmax(x, 3), z]),
        call("if_then_else", "int32", [x < 3, const(3), z]),
    ),
    (Let(z, const(3), z + x), x + 3),
    (f - 0.0 - f, f - f),
]


@pytest.mark.parametrize(
    ("data", "expected"),
    ADDITION
    + SUBTRACTION
    + MULTIPLICATION
    + FLOOR_DIVISION
    + FLOOR_MODULUS
    + MIN_MAX
    + COMPARISON
    + LOGIC
    + VECTORS
    + OTHERS,
    ids=lambda expr: str(expr),
)
def test_rule(data: Any, expected: Any, same: Any) -> None:
    """Each expression becomes the expected one, and that one stays as it is."""
    check(same, data, expected)


@pytest.mark.parametrize(
    ("data", "expected", "bounds"),
    [
        (flm(x * 32 + y, 64), flm(x, 2) * 32 + y, {"y": (0, 31)}),
        (fld(x * 32 + y, 64), fld(x, 2), {"y": (0, 31)}),
        (flm(x, 8), x, {"x": (0, 7)}),
        (flm(x, 8), x + (-8), {"x": (8, 15)}),
        (fld(x, 8), const(1), {"x": (8, 15)}),
        (fld(x, y), const(0), {"x": (0, 3), "y": (4, 9)}),
        (tmin(x, y), y, {"x": (10, 20), "y": (0, 10)}),
        (tmax(tmin(x, y), z), tmin(x, y), {"x": (5, 9), "y": (5, 9), "z": (0, 5)}),
        (x < y, TRUE, {"x": (0, 3), "y": (4, 9)}),
        (x * 4 + y < 16, TRUE, {"x": (0, 3), "y": (0, 3)}),
        (tdiv(tdiv(x, 3), 2), tdiv(x, 6), {}),
        (tdiv(tdiv(x, 2) + 1, 3), tdiv(x + 2, 6), {"x": (0, 100)}),
        (tdiv(x * 4 + y, 2), x * 2 + tdiv(y, 2), {"x": (0, 100), "y": (0, 100)}),
        (tdiv(x * 4 - y, 2), tdiv(x * 4 - y, 2), {"x": (0, 100), "y": (0, 100)}),
        (tmod(x * 10 + y, 2), tmod(y, 2), {"x": (0, 100), "y": (0, 100)}),
        (tmod(x * 10, 2), const(0), {}),
        (tmod(x, 8), x, {"x": (0, 7)}),
        (tdiv(x, -1), 0 - x, {}),
        (tmin(fld(x + 3, 4) * 4, tmax(x, 4)), tmax(x, const(4)), {"x": (1, 100)}),
    ],
    ids=lambda value: str(value),
)
def test_rule_under_bounds(data: Any, expected: Any, bounds: Any, same: Any) -> None:
    """Rules that need to know where a variable lies."""
    check(same, data, expected, **bounds)


def test_floats_are_not_reassociated(same: Any) -> None:
    """Only constants fold; the order of operations is the program's."""
    check(same, (f + 1.0) + 2.0, (f + 1.0) + 2.0)
    check(same, f * 0.0, f * 0.0)
    check(same, f - f, f - f)
    check(same, const(1.5) * const(2.0), const(3.0))


def test_narrow_constants_wrap(same: Any) -> None:
    """Constants of a type that wraps fold modulo its size, and its comparisons are left alone."""
    u = Var("u", "uint8")
    check(same, (u + const(200, "uint8")) + const(100, "uint8"), u + const(44, "uint8"))
    check(same, u + const(1, "uint8") > u, u < u + const(1, "uint8"))
    check(same, fld(u * const(4, "uint8"), const(2, "uint8")), fld(u * const(4, "uint8"), const(2, "uint8")))


def test_a_node_on_which_no_rule_works_stays_itself() -> None:
    """Passes see by identity that nothing changed."""
    expr = fld(x + y, 4) * 8 + z
    assert Analyzer().rewrite_simplify(expr) is expr


def test_calls_that_write_state_are_not_merged(same: Any) -> None:
    """Two calls that may write are two events: their difference is not zero."""
    first, second = (call("call_extern_test_effect", "int32", [x]) for _ in range(2))
    found = Analyzer().simplify(first - second)
    assert not isinstance(found, IntImm)
    assert first in found.children() and second in found.children()


def test_opposite_conditions_keep_their_lanes() -> None:
    """A condition and its opposite are false, or true, in every lane."""
    lanes = Var("lanes", "boolx8")
    for both, truth in ((land(lanes, lnot(lanes)), 0), (lor(lanes, lnot(lanes)), 1)):
        made = Analyzer().simplify(both)
        assert isinstance(made, Broadcast) and made.lanes == 8
        assert isinstance(made.value, IntImm) and made.value.value == truth
