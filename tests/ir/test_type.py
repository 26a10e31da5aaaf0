"""Types of both levels."""

import pytest

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.expr import Any, Var
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    VOID,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TupleType,
    TypeCall,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type_relation import TypeRelation
from tilewright.support.errors import ExpressionError


def test_equal_by_value() -> None:
    """Types of the same parts are equal and hash alike."""
    assert PrimType("int32") == PrimType("int32") != PrimType("int64")
    assert PointerType(PrimType("int8"), "shared") == PointerType(PrimType("int8"), "shared")
    assert PointerType(PrimType("int8"), "shared") != PointerType(PrimType("int8"))
    assert len({TupleType([PrimType("int32")]), TupleType((PrimType("int32"),))}) == 1
    assert TupleType([]) == VOID
    assert RelayRefType(PrimType("int32")) == RelayRefType(PrimType("int32"))


def test_variables_are_themselves() -> None:
    """Type variables and incomplete types are equal to themselves alone."""
    assert TypeVar("a") != TypeVar("a") and IncompleteType() != IncompleteType()
    variable = TypeVar("a", TypeKind.ShapeVar)
    assert variable == variable and {variable: 1}[variable] == 1
    assert GlobalTypeVar("List") != GlobalTypeVar("List")
    assert GlobalTypeVar("List").kind is TypeKind.AdtHandle and variable.kind is TypeKind.ShapeVar


def test_calls_of_type_constructors() -> None:
    """Calling a type variable applies it."""
    listed, element = GlobalTypeVar("List"), TypeVar("a")
    applied = listed(element)
    assert isinstance(applied, TypeCall) and applied.func is listed and applied.args == (element,)
    assert listed(element) == listed(element)


def test_function_types() -> None:
    """A function type keeps its parts; its parameters are type variables."""
    a = TypeVar("a")
    function = FuncType([a, PrimType("int32")], a, [a])
    assert function.arg_types[0] is a and function.type_params == (a,) and function.type_constraints == ()
    with pytest.raises(ExpressionError, match="is a TypeVar"):
        FuncType([], a, [PrimType("int32")])  # type: ignore[list-item]
    relation = TypeRelation(print, [a], 1)
    assert relation.num_inputs == 1 and relation.args == (a,)


def test_tensor_types() -> None:
    """Tensor types are equal by shape and element type, with unknown dimensions equal to each other."""
    n = Var("n")
    assert TensorType((2, 3), "float32") == TensorType([2, 3]) != TensorType((3, 2))
    assert TensorType((n,)) == TensorType((n,)) != TensorType((Var("n"),))
    assert TensorType((Any(), 2)) == TensorType((Any(), 2)) and len({TensorType((2,)), TensorType((2,))}) == 1
    assert TensorType((2, 3)).concrete_shape == (2, 3)
    assert (
        repr(TensorType((Any(), 3))) == "Tensor[(?, 3), float32]"
        and repr(TensorType((4,))) == "Tensor[(4), float32]"
    )
    with pytest.raises(ExpressionError, match="not a constant"):
        TensorType((n,)).concrete_shape
    with pytest.raises(ExpressionError, match="is an integer"):
        TensorType((1.5,))


def test_constructors_need_graphs() -> None:
    """Constructors of data types get tags that tell them apart."""
    header = GlobalTypeVar("Bool")
    definition = TypeData(header, [], [Constructor("True", [], header), Constructor("False", [], header)])
    assert definition.constructors[1].tag == definition.constructors[0].tag + 1
    other = TypeData(GlobalTypeVar("Other"), [], [Constructor("One", [], GlobalTypeVar("Other"))])
    assert other.constructors[0].tag != definition.constructors[0].tag
