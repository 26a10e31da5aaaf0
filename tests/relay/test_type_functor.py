"""Walking and rewriting types."""

from typing import Any

import pytest

from tilewright.relay import (
    Constructor,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)
from tilewright.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor

a, handle = TypeVar("a"), GlobalTypeVar("Box")
tensor = TensorType((2, 3), "float32")
EVERY = [
    a,
    handle,
    tensor,
    IncompleteType(),
    TupleType([tensor, a]),
    FuncType([tensor], a, [a], [TypeRelation(max, [tensor], 1)]),
    RefType(tensor),
    TypeRelation(max, [tensor, a], 1),
    TypeCall(handle, [tensor]),
    TypeData(handle, [a], [Constructor("Wrap", [a, tensor], handle)]),
]


class CountTensors(TypeVisitor):
    """Counts tensors."""

    def __init__(self) -> None:
        self.count = 0

    def visit_tensor_type(self, tt: TensorType) -> None:
        self.count += 1


class ToInteger(TypeMutator):
    """Tensors become tensors of integers."""

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return TensorType(tt.shape, "int32")


@pytest.mark.parametrize(("typ", "count"), list(zip(EVERY, [0, 0, 1, 0, 1, 2, 1, 1, 1, 1], strict=True)))
def test_visitors_see_every_part(typ: Any, count: int) -> None:
    """Wherever a tensor stands."""
    visitor = CountTensors()
    visitor.visit(typ)
    assert visitor.count == count


@pytest.mark.parametrize("typ", EVERY)
def test_mutators_change_what_they_say(typ: Any) -> None:
    """Every tensor, and nothing else; a type without one stays the same object."""
    made = ToInteger().visit(typ)
    assert str(made) == str(typ).replace("float32", "int32")
    if "float32" not in str(typ):
        assert made is typ
    assert TypeMutator().visit(typ) is typ


def test_a_functor_without_the_method_is_an_error() -> None:
    """It says which method is missing."""
    with pytest.raises(NotImplementedError, match="visit_tuple_type"):
        TypeFunctor().visit(TupleType([]))


def test_each_type_has_a_method_to_go_back_to() -> None:
    """A subclass may pass a type on to the base's method, which gives what ``visit_default`` gives."""

    class Named(TypeFunctor):
        def visit_default(self, typ: Any) -> str:
            return type(typ).__name__

        def visit_tuple_type(self, typ: Any) -> str:
            return "empty" if not typ.fields else str(super().visit_tuple_type(typ))

    assert Named().visit(TupleType([])) == "empty"
    assert Named().visit(TupleType([TupleType([])])) == "TupleType"
    assert Named().visit(TensorType((2,))) == "TensorType"
    assert Named().visit_func_type(FuncType([], TupleType([]))) == "FuncType"
