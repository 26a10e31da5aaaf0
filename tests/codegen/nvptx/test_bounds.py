"""The ranges of indices: never narrower than the values that an index takes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import tir
from tilewright.arith import Analyzer
from tilewright.codegen.nvptx.bounds import IndexBounds
from tilewright.ir.expr import PrimExpr
from tilewright.tir.functor import substitute

X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")
RANGES = {X: (0, 5), Y: (-3, 4)}


def _combined(parts: Any) -> Any:
    pair = st.tuples(parts, parts)
    positive = st.integers(1, 7)
    return st.one_of(
        pair.map(lambda ab: ab[0] + ab[1]),
        pair.map(lambda ab: ab[0] - ab[1]),
        pair.map(lambda ab: ab[0] * ab[1]),
        pair.map(lambda ab: tir.min(*ab)),
        pair.map(lambda ab: tir.max(*ab)),
        pair.map(lambda ab: tir.Select(ab[0] < ab[1], ab[0], ab[1])),
        st.tuples(parts, positive).map(lambda ab: tir.floordiv(*ab)),
        st.tuples(parts, positive).map(lambda ab: tir.floormod(*ab)),
        st.tuples(parts, positive).map(lambda ab: tir.truncdiv(*ab)),
        st.tuples(parts, positive).map(lambda ab: tir.truncmod(*ab)),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.just(X), st.just(Y), st.integers(-9, 9).map(lambda value: tir.const(value, "int32"))),
    _combined,
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS)
def test_every_value_is_within(expr: PrimExpr) -> None:
    bounds = IndexBounds()
    for var, (low, high) in RANGES.items():
        bounds.bind(var, low, high)
    low, high = bounds.bound(expr)
    for x in range(RANGES[X][0], RANGES[X][1] + 1):
        for y in range(RANGES[Y][0], RANGES[Y][1] + 1):
            assert low <= _value(expr, x, y) <= high


def _value(expr: PrimExpr, x: int, y: int) -> int:
    found = Analyzer().simplify(substitute(expr, {X: tir.const(x, "int32"), Y: tir.const(y, "int32")}))
    assert isinstance(found, tir.IntImm)
    return found.value


def test_narrow() -> None:
    """An index is narrow only if its parts are: what overflows on the way is computed in 64 bits."""
    bounds = IndexBounds()
    bounds.bind(X, 0, 1 << 20)
    assert bounds.is_narrow(X * 1024) and not bounds.is_narrow(X * 4096)
    assert not bounds.is_narrow(X * 4096 - X * 4095)
    assert bounds.is_natural(X * 4096) and not bounds.is_natural(X - 1)
