"""Types with variables for unknown dimensions: what they share, what they rely on."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.expr import IntImm, Mul, SizeVar
from tilewright.relay.analysis.symbolic_types import (
    SymbolicTypes,
    has_constant_shape,
    uses_unknown_dimensions,
)


def typed(*params: relay.Var, body: Any) -> relay.Function:
    """A function with the types of all its expressions."""
    function = relay.Function(params, body)
    made: relay.Function = relay.transform.InferType()(relay.IRModule.from_expr(function))["main"]
    return made


def unknown(name: str, *extents: int | None) -> relay.Var:
    """A variable; None is a dimension that is not known."""
    return relay.var(name, shape=[relay.Any() if one is None else one for one in extents])


def test_constant_shapes_need_no_variables() -> None:
    """A function that knows all its dimensions."""
    x = unknown("x", 3)
    assert not uses_unknown_dimensions(typed(x, body=relay.exp(x)))
    y = unknown("y", None)
    assert uses_unknown_dimensions(typed(y, body=relay.sum(y)))
    assert uses_unknown_dimensions(typed(x, body=relay.argwhere(x)))


def test_a_dimension_keeps_its_variable_through_a_chain() -> None:
    """The result's dimensions are the parameter's own."""
    x = unknown("x", None, 4)
    types = SymbolicTypes(typed(x, body=relay.nn.relu(relay.exp(x))))
    given, made = types.parameter_types(0)[0], types.result
    assert isinstance(given.shape[0], SizeVar) and made.shape[0] is given.shape[0]
    assert types.conditions == []


def test_dimensions_are_expressions_of_the_parameters() -> None:
    """What a relation computes of variables."""
    x = unknown("x", None, 4)
    types = SymbolicTypes(typed(x, body=relay.reshape(x, (-1,))), "int64")
    (extent,) = types.result.shape
    rows = types.parameter_types(0)[0].shape[0]
    assert isinstance(extent, Mul) and extent.a is rows and extent.b.value == 4
    assert extent.dtype == "int64"


def test_dimensions_that_must_be_equal_share_a_variable() -> None:
    """The sum of a product; nothing is left to check but that the arguments fit the shapes."""
    x, w = unknown("x", None, None), unknown("w", None, None)
    types = SymbolicTypes(typed(x, w, body=relay.nn.dense(x, w)))
    data, weight = types.parameter_types(0)[0], types.parameter_types(1)[0]
    assert data.shape[1] is weight.shape[1]
    assert data.shape[0] is not weight.shape[0]
    assert types.conditions == []


def test_a_dimension_that_must_be_a_constant_is_one() -> None:
    """The weight tells how many elements there are."""
    x, w = unknown("x", None, None), unknown("w", 3, 7)
    types = SymbolicTypes(typed(x, w, body=relay.nn.dense(x, w)))
    extent = types.parameter_types(0)[0].shape[1]
    assert isinstance(extent, IntImm) and extent.value == 7


def test_what_broadcasting_relies_on_is_a_condition() -> None:
    """Two unknown dimensions are equal, or one of them is one."""
    x, y = unknown("x", None), unknown("y", None)
    types = SymbolicTypes(typed(x, y, body=x + y))
    (condition,) = types.conditions
    assert condition.message.startswith("add: dimensions that are neither equal nor one")
    assert not has_constant_shape(types.result)


def test_dimensions_that_depend_on_values_have_variables_of_their_own() -> None:
    """They come from the shape of the result."""
    x = unknown("x", 3, 4)
    types = SymbolicTypes(typed(x, body=relay.argwhere(x)))
    count, rank = types.result.shape
    assert isinstance(count, SizeVar) and isinstance(rank, IntImm) and rank.value == 2
