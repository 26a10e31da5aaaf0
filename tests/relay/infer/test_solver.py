"""Making types equal."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tilewright import te
from tilewright.ir.expr import Any as Unknown
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tilewright.relay.infer.solver import Mismatch, Solver, substitute_types

FLOAT = TensorType((2, 3), "float32")
INTEGER = TensorType((2, 3), "int32")
LIST = GlobalTypeVar("List")
A, B = TypeVar("A"), TypeVar("B")
N = te.var("n")


def tensor(*shape: Any) -> TensorType:
    """A tensor of float32."""
    return TensorType(shape, "float32")


EQUAL = [
    (FLOAT, TensorType((2, 3), "float32")),
    (TupleType([FLOAT, INTEGER]), TupleType([FLOAT, INTEGER])),
    (FuncType([FLOAT], INTEGER), FuncType([FLOAT], INTEGER)),
    (RelayRefType(FLOAT), RelayRefType(FLOAT)),
    (TypeCall(LIST, [FLOAT]), TypeCall(LIST, [FLOAT])),
    (LIST, TypeCall(LIST, [])),
    (A, A),
    (FuncType([A], A, [A]), FuncType([B], B, [B])),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_equal_types(first: Type, second: Type) -> None:
    """Types of the same structure are one, whatever their type parameters are called."""
    Solver().unify(first, second)
    Solver().unify(second, first)


DIFFERENT = [
    (FLOAT, INTEGER, "the element types differ"),
    (FLOAT, tensor(2), "the numbers of dimensions differ"),
    (FLOAT, tensor(2, 4), "dimension 1 is 3 in one, 4 in the other"),
    (FLOAT, TupleType([FLOAT]), "is not"),
    (TupleType([FLOAT]), TupleType([FLOAT, FLOAT]), "one has 1 parts, the other 2"),
    (FuncType([FLOAT], FLOAT), FuncType([FLOAT, FLOAT], FLOAT), "one has 1 parts"),
    (TypeCall(LIST, [FLOAT]), TypeCall(GlobalTypeVar("Tree"), [FLOAT]), "List.* is not .*Tree"),
    (A, B, "A is not B"),
    (RelayRefType(FLOAT), RelayRefType(INTEGER), "the element types differ"),
    (FuncType([A], A, [A]), FuncType([A, B], A, [A, B]), "one has 2 parts, the other 1"),
]


@pytest.mark.parametrize(("first", "second", "message"), DIFFERENT)
def test_different_types(first: Type, second: Type, message: str) -> None:
    """The message says what differs."""
    with pytest.raises(Mismatch, match=message):
        Solver().unify(first, second)
    with pytest.raises(Mismatch):
        Solver().unify(second, first)


DIMENSIONS = [
    ((2,), (Unknown(),), "?"),
    ((N,), (2,), "2"),
    ((N,), (N,), "n"),
    ((N,), (Unknown(),), "?"),
    ((N + 0,), (N,), "n"),
    ((N,), (te.var("m"),), "?"),
]


@pytest.mark.parametrize(("first", "second", "expected"), DIMENSIONS)
def test_dimensions(first: Any, second: Any, expected: str) -> None:
    """An unknown dimension makes the result unknown; a constant is more than a symbol."""
    for one, other in ((first, second), (second, first)):
        made = Solver().unify(tensor(*one), tensor(*other))
        assert isinstance(made, TensorType)
        assert ("?" if isinstance(made.shape[0], Unknown) else str(made.shape[0])) == expected


def test_incomplete_types_are_found() -> None:
    """What an incomplete type is made equal to, it stands for, also within others."""
    solver, hole, other = Solver(), IncompleteType(), IncompleteType()
    solver.unify(TupleType([hole, FLOAT]), TupleType([INTEGER, other]))
    assert solver.resolve(hole) == INTEGER
    assert solver.resolve(FuncType([other], hole)) == FuncType([FLOAT], INTEGER)
    assert solver.is_complete(RelayRefType(hole))
    assert not solver.is_complete(TypeCall(LIST, [IncompleteType()]))
    with pytest.raises(Mismatch):
        solver.unify(hole, FLOAT)


def test_chains_of_incomplete_types() -> None:
    """One stands for another until something is known."""
    solver = Solver()
    holes = [IncompleteType() for _ in range(50)]
    for one, other in pairwise(holes):
        solver.unify(one, other)
    assert not solver.is_complete(holes[0])
    before = solver.version
    solver.unify(holes[25], FLOAT)
    assert solver.version == before + 1
    assert all(solver.resolve(hole) == FLOAT for hole in holes)


def test_a_type_that_contains_itself() -> None:
    """There is no such type."""
    hole = IncompleteType()
    with pytest.raises(Mismatch, match="contain itself"):
        Solver().unify(hole, TupleType([FLOAT, hole]))


def test_a_generic_function_where_a_plain_one_is_asked_for() -> None:
    """It is used at the types that fit."""
    solver = Solver()
    result = IncompleteType()
    solver.unify(FuncType([A], A, [A]), FuncType([FLOAT], result))
    assert solver.resolve(result) == FLOAT


def test_resolving_keeps_what_is_complete() -> None:
    """The same object comes back."""
    solver = Solver()
    for given, _ in EQUAL:
        assert solver.resolve(given) is given


def test_substitution() -> None:
    """Type variables are replaced everywhere; with strip the function is generic no more."""
    given = FuncType([A, TypeCall(LIST, [A])], RelayRefType(TupleType([A, B])), [A, B])
    made = substitute_types(given, {A: FLOAT}, strip=True)
    assert made == FuncType([FLOAT, TypeCall(LIST, [FLOAT])], RelayRefType(TupleType([FLOAT, B])))
