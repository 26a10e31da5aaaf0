"""The normal form of dimensions: equal where the expressions are, however they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.ir import operators
from tilewright.ir.dimension import constant_dimension, same_dimensions
from tilewright.ir.expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Select, SizeVar, Sub, Var
from tilewright.ir.tensor_type import TensorType

N, M, WIDE = Var("n", "int32"), SizeVar("m", "int32"), Var("w", "int64")


def _int(value: int) -> IntImm:
    return IntImm("int32", value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (N + 1, 1 + N),
        (2 * (N + 1) - N, N + 2),
        ((N + M) * (N - M), N * N - M * M),
        (operators.floordiv(N + 1, 2), operators.floordiv(1 + N, 2)),
        (operators.floormod(M + N, 4) * 2, 2 * operators.floormod(N + M, 4)),
        (operators.minimum(N, M + 1), operators.minimum(1 + M, N)),
        (operators.maximum(N, M), operators.maximum(M, N)),
        (operators.cast("int64", N + 1), operators.cast("int64", N) + 1),
        (Select(N + 1 > M, N, M), Select(1 + N > M, N, M)),
        (Sub(N, N), Sub(M, M)),
    ],
)
def test_the_same_dimension(one: Any, other: Any) -> None:
    """Order, grouping, distribution and widening casts do not matter; neither do they to types and their hashes."""
    assert same_dimensions(one, other) and same_dimensions(other, one)
    first, second = TensorType((4, one)), TensorType((4, other))
    assert first == second and hash(first) == hash(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (N, M),
        (N + 1, N),
        (N * 2, N + 2),
        (N, Var("n", "int32")),
        (operators.floordiv(N, 2), operators.floormod(N, 2)),
        (operators.floordiv(N, M), operators.floordiv(M, N)),
        (operators.minimum(N, M), operators.maximum(N, M)),
        (operators.cast("int8", N), N),
        (operators.cast("int32", WIDE), WIDE),
        (Select(N > M, N, M), Select(M > N, N, M)),
    ],
)
def test_other_dimensions(one: Any, other: Any) -> None:
    """What may differ is not the same: variables are equal only to themselves, and narrowing may lose bits."""
    assert not same_dimensions(one, other) and TensorType((one,)) != TensorType((other,))


def test_constants_in_disguise() -> None:
    """A dimension whose variables cancel is its constant, to equality and hash."""
    assert constant_dimension(Sub(Add(N, _int(3)), N)) == 3 and constant_dimension(Sub(N, N)) == 0
    assert constant_dimension(N) is None and constant_dimension(_int(7)) == 7
    disguised = TensorType((Sub(Add(N, _int(3)), N),))
    assert disguised == TensorType((3,)) and hash(disguised) == hash(TensorType((3,)))


def test_depth_and_powers() -> None:
    """A chain of a hundred thousand divisions is walked without recursion, and powers of sums stay small."""
    one: Any = N
    other: Any = N
    for _ in range(100_000):
        one, other = FloorDiv(Add(one, _int(1)), _int(2)), FloorDiv(Add(_int(1), other), _int(2))
    assert same_dimensions(one, other) and not same_dimensions(one, Add(other, _int(1)))
    power: Any = Add(N, M)
    turned: Any = Add(M, N)
    for _ in range(12):
        power, turned = Mul(power, power), Mul(turned, turned)
    assert same_dimensions(power, turned)


def _expressions() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.sampled_from([N, M]), st.integers(-3, 3).map(_int))
    nodes = st.sampled_from([Add, Sub, Mul, Min, Max, FloorDiv, FloorMod])
    return st.recursive(
        leaves, lambda inner: st.tuples(nodes, inner, inner).map(lambda p: p[0](p[1], p[2])), max_leaves=8
    )


def _value(expr: Any, values: dict[Any, int]) -> int:
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, Var):
        return values[expr]
    a, b = _value(expr.a, values), _value(expr.b, values)
    if isinstance(expr, FloorDiv | FloorMod):
        if b == 0:
            raise ZeroDivisionError
        return a // b if isinstance(expr, FloorDiv) else a % b
    made = {Add: a + b, Sub: a - b, Mul: a * b, Min: min(a, b), Max: max(a, b)}
    return made[type(expr)]


@given(_expressions(), _expressions())
def test_same_form_same_value(one: Any, other: Any) -> None:
    """Whatever has the same form has the same value, for all values of the variables; a form does not change."""
    assert same_dimensions(one, one)
    if not same_dimensions(one, other):
        return
    for n in (-5, 0, 1, 7):
        for m in (-2, 0, 3):
            try:
                assert _value(one, {N: n, M: m}) == _value(other, {N: n, M: m})
            except ZeroDivisionError:
                continue
