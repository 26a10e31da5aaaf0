"""Arithmetic on dimensions: what relations leave for the program to check."""

from __future__ import annotations

from itertools import product

import pytest

from tilewright import te
from tilewright.arith import Analyzer
from tilewright.ir.expr import Any
from tilewright.ir.operators import const, equal
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import (
    Proofs,
    broadcast_dimension,
    equal_dimensions,
    recorded_conditions,
    remembered_proofs,
    require,
    require_multiple,
    require_source,
    same,
)
from tilewright.tir.functor import substitute

N, M = te.size_var("n", "int64"), te.size_var("m", "int64")


def holds(condition: object, n: int, m: int = 0) -> bool:
    """The value of a condition for numbers."""
    return Analyzer().can_prove(substitute(condition, {N: const(n, "int64"), M: const(m, "int64")}))  # type: ignore[type-var]


def test_constants_are_decided_at_once() -> None:
    """They fit, or the relation does not hold; nothing is recorded."""
    with recorded_conditions() as found:
        require_multiple(12, 4, "parts of four")
        assert same(3, 3, "the sizes") == 3
        with pytest.raises(RelationError, match="parts of four"):
            require_multiple(10, 4, "parts of four")
        with pytest.raises(RelationError, match="3 is not 4"):
            same(3, 4, "the sizes")
    assert found == []


def test_symbols_are_left_for_the_program() -> None:
    """With the message that it gives."""
    with recorded_conditions() as found:
        require_multiple(N, 4, "parts of four")
    (condition,) = found
    assert condition.message == "parts of four" and condition.pair is None
    assert holds(condition.holds, 8) and not holds(condition.holds, 9)


def test_equal_dimensions_are_a_pair() -> None:
    """So that one variable can stand for both; those that are equal anyway are not mentioned."""
    with recorded_conditions() as found:
        assert same(N, M, "the rows") is N
        same(N, N, "the rows")
        require(equal_dimensions, (N * 2, N + N), "twice")
    (condition,) = found
    assert condition.pair == (N, M) and condition.message == "the rows: they differ"


def test_nothing_is_said_of_unknown_dimensions() -> None:
    """Nor is anything recorded where nobody asked."""
    with recorded_conditions() as found:
        same(Any(), N, "the rows")
        require_multiple(Any(), 4, "parts of four")
    assert found == []
    assert same(N, M, "the rows") is N


@pytest.mark.parametrize(("n", "m", "extent"), [(3, 3, 3), (1, 4, 4), (4, 1, 4), (0, 1, 0), (1, 0, 0)])
def test_broadcasting_of_symbols(n: int, m: int, extent: int) -> None:
    """The extent that NumPy gives; the condition holds."""
    with recorded_conditions() as found:
        made = broadcast_dimension(N, M)
    assert holds(equal(made, extent), n, m)
    assert holds(found[0].holds, n, m)


def test_broadcasting_that_does_not_fit() -> None:
    """Two symbols, or a symbol and a constant."""
    with recorded_conditions() as found:
        broadcast_dimension(N, M)
        assert broadcast_dimension(N, 4) == 4
    both, constant = found
    assert not holds(both.holds, 2, 3)
    assert holds(constant.holds, 4) and holds(constant.holds, 1) and not holds(constant.holds, 2)


def test_there_is_something_to_read_from() -> None:
    """Unless nothing is read: the axes that indices choose from are not empty."""
    with recorded_conditions() as found:
        require_source((3,), (2, N), "empty")
        require_source((0,), (2, 0), "empty")
        require_source((N,), (0, M), "empty")
        with pytest.raises(RelationError, match="empty"):
            require_source((3, 0), (2,), "empty")
        assert found == []
        require_source((N, 3), (M, 2), "empty")
    (condition,) = found
    assert holds(condition.holds, 1, 4) and holds(condition.holds, 0, 0) and not holds(condition.holds, 0, 4)


@pytest.mark.parametrize("order", list(product(range(3), repeat=4)))
def test_remembered_broadcasts_are_right_for_all_numbers(order: tuple[int, ...]) -> None:
    """What is said to be the dimension of a broadcast is, for all numbers, also those for which it must fail."""
    sizes = [te.size_var(name, "int64") for name in "abc"]
    proofs = Proofs()

    def value(extent: object, numbers: dict[object, int]) -> int:
        if extent in numbers:
            return numbers[extent]
        first, second = (value(part, numbers) for part in proofs.broadcasts[extent])  # type: ignore[index]
        return second if first == 1 else first

    with remembered_proofs(proofs):
        left = broadcast_dimension(sizes[order[0]], sizes[order[1]])
        right = broadcast_dimension(sizes[order[2]], sizes[order[3]])
        both = [broadcast_dimension(left, right), broadcast_dimension(left, broadcast_dimension(left, right))]
    for given in product((0, 1, 2, 3), repeat=3):
        numbers: dict[object, int] = dict(zip(sizes, given, strict=True))
        expected = value(right, numbers) if value(left, numbers) == 1 else value(left, numbers)
        assert [value(one, numbers) for one in both] == [expected, expected]
