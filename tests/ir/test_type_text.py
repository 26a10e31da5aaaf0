"""The text of types."""

import pytest

from tilewright import tir
from tilewright.ir import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from tilewright.ir.type_text import is_expressible, type_text

N, M = tir.Var("n", "int32"), tir.Var("m", "int32")
A = TypeVar("A")
BOX = GlobalTypeVar("Box")
INT = TensorType((), "int32")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (TensorType((2, 3), "int8"), "Tensor[(2, 3), int8]"),
        (TensorType((N, tir.IntImm("int64", 4))), "Tensor[(n, 4i64), float32]"),
        (TensorType(((N + 1) * 2, N - (M + 1))), "Tensor[((n + 1) * 2, n - (m + 1)), float32]"),
        (
            TensorType((tir.floordiv(N, 2) * 3, tir.floormod(N, 2))),
            "Tensor[(floordiv(n, 2) * 3, floormod(n, 2)), float32]",
        ),
        (TensorType((tir.min(N, M), tir.Any())), "Tensor[(min(n, m), ?), float32]"),
        (TupleType([INT, TupleType([])]), "(int32, ())"),
        (RelayRefType(INT), "ref(int32)"),
        (
            FuncType([A], TupleType([A]), [A, TypeVar("S", TypeKind.ShapeVar)]),
            "fn [A, S: ShapeVar](A) -> (A,)",
        ),
        (TypeCall(BOX, [INT]), "Box[int32]"),
        (BOX(), "Box[]"),
        (BOX, "Box"),
        (IncompleteType(), "_"),
        (PrimType("float32"), "PrimType(float32)"),
        (PointerType(PrimType("int8"), "shared"), 'PointerType(PrimType(int8), "shared")'),
        (TypeRelation(max, [INT, INT], 1), "TypeRelation(max, [int32, int32], 1)"),
        (
            TypeData(BOX, [A], [Constructor("Full", [A], BOX), Constructor("Empty", [], BOX)]),
            "type Box[A] {\n  Full(A),\n  Empty,\n}",
        ),
        (TypeData(BOX, [A], []), "extern type Box[A]"),
    ],
)
def test_text(given: Type, text: str) -> None:
    """Each kind of type has its text."""
    assert type_text(given) == text == str(given)


def test_what_dimensions_can_say() -> None:
    """Sums, products, whole divisions and limits of integers have words; casts and calls have none."""
    assert is_expressible(tir.max(N * 2, M) + 1)
    assert not is_expressible(tir.truncdiv(N, 2))
    assert not is_expressible(N.astype("int64"))
