"""Free and bound type variables."""

from tilewright.ir.module import IRModule
from tilewright.relay import (
    Constructor,
    Function,
    FuncType,
    GlobalTypeVar,
    Let,
    TensorType,
    TupleType,
    TypeData,
    TypeVar,
    Var,
)
from tilewright.relay.analysis import all_type_vars, bound_type_vars, free_type_vars, free_vars

a, b, c = TypeVar("a"), TypeVar("b"), TypeVar("c")


def test_annotations_use_type_variables() -> None:
    """A type variable of an annotation that no function binds is free."""
    x, y = Var("x", TupleType([a, TensorType((), "int32")])), Var("y")
    let = Let(x, y, x)
    assert free_vars(let) == [y]
    assert free_type_vars(let) == [a]


def test_function_types_bind_their_parameters() -> None:
    """Parameters are bound, other variables free."""
    typ = FuncType([a, b], TupleType([b, c]), [a, b])
    assert bound_type_vars(typ) == [a, b]
    assert free_type_vars(typ) == [c]
    assert all_type_vars(typ) == [a, b, c]


def test_functions_bind_their_type_parameters() -> None:
    """In annotations of parameters and in the type of the result."""
    x = Var("x", a)
    function = Function([x], x, TupleType([a, b]), [a])
    assert bound_type_vars(function) == [a]
    assert free_type_vars(function) == [b]


def test_a_data_type_binds_the_variables_of_its_constructors() -> None:
    """Where the module with the definition is given."""
    box = GlobalTypeVar("Box")
    wrap = Constructor("Wrap", [a], box)
    definition = TypeData(box, [a], [wrap])
    mod = IRModule({}, {box: definition})
    assert free_type_vars(definition) == []
    assert free_type_vars(wrap) == [a]
    assert free_type_vars(wrap, mod) == []
    assert bound_type_vars(wrap, mod) == [a]
