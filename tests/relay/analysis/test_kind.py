"""Kinds of types."""

import pytest

from tilewright.ir.module import IRModule
from tilewright.relay import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    RefType,
    TensorType,
    TupleType,
    TypeCall,
    TypeData,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from tilewright.relay.analysis import KindError, check_kind

tensor = TensorType((1, 2), "float32")
generic = TypeVar("t")
shape = TypeVar("s", TypeKind.ShapeVar)
base = TypeVar("b", TypeKind.BaseType)
constraint = TypeVar("c", TypeKind.Constraint)


@pytest.mark.parametrize(
    ("typ", "kind"),
    [
        (generic, TypeKind.Type),
        (shape, TypeKind.ShapeVar),
        (constraint, TypeKind.Constraint),
        (TupleType([generic, tensor, FuncType([], TupleType([]))]), TypeKind.Type),
        (FuncType([generic, tensor], RefType(tensor)), TypeKind.Type),
        (RefType(TupleType([tensor])), TypeKind.Type),
        (TypeRelation(max, [tensor, generic], 1), TypeKind.Constraint),
        (GlobalTypeVar("g"), TypeKind.AdtHandle),
        (GlobalTypeVar("g", TypeKind.Type), TypeKind.Type),
    ],
)
def test_the_kind_of_a_type(typ: object, kind: TypeKind) -> None:
    """Values have types of kind Type; relations are constraints; variables say their kind."""
    assert check_kind(typ) is kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "typ",
    [
        TupleType([shape, base, constraint]),
        FuncType([shape], tensor),
        FuncType([tensor], constraint),
        FuncType([tensor], tensor, [], [generic]),  # type: ignore[list-item]
        RefType(shape),
        TypeRelation(max, [base, tensor], 1),
        RefType(TupleType([FuncType([shape], tensor)])),
        TypeCall(generic, []),
        TypeCall(GlobalTypeVar("g", TypeKind.BaseType), []),
    ],
)
def test_types_of_the_wrong_kind_are_refused(typ: object) -> None:
    """Wherever they stand."""
    with pytest.raises(KindError):
        check_kind(typ)  # type: ignore[arg-type]


def test_data_types_get_as_many_types_as_they_take() -> None:
    """The module knows how many."""
    box = GlobalTypeVar("Box")
    definition = TypeData(box, [generic], [Constructor("Wrap", [generic], box)])
    mod = IRModule({}, {box: definition})
    assert check_kind(definition, mod) is TypeKind.TypeData
    assert check_kind(TypeCall(box, [tensor]), mod) is TypeKind.Type
    with pytest.raises(KindError, match="Box takes 1 types, it is given 2"):
        check_kind(TypeCall(box, [tensor, tensor]), mod)
    with pytest.raises(KindError):
        check_kind(TypeCall(box, [definition]), mod)
