"""Shape functions derived from relations and composed with operators' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import relay
from tilewright.compile import compile_unit, link
from tilewright.relay.backend.shape_functions import (
    ShapeInput,
    copied_shapes,
    lower_shape_function,
    shape_function,
)
from tilewright.runtime import ndarray as nd
from tilewright.support.errors import RuntimeFailure
from tilewright.target import Target


def typed(*params: relay.Var, body: Any) -> relay.Function:
    """A function with the types of all its expressions."""
    made: relay.Function = relay.transform.InferType()(
        relay.IRModule.from_expr(relay.Function(params, body))
    )["main"]
    return made


def unknown(name: str, *extents: int | None, dtype: str = "float32") -> relay.Var:
    """A variable; None is a dimension that is not known."""
    return relay.var(name, shape=[relay.Any() if one is None else one for one in extents], dtype=dtype)


def shapes(function: relay.Function, *arguments: Any) -> list[tuple[int, ...]]:
    """What the compiled shape function writes: arguments are shapes, or arrays where it reads values."""
    target = Target("llvm")
    library = link([compile_unit(lower_shape_function(function, target, "shapes"), target)], target)
    made = shape_function(function)
    outputs = [nd.empty([int(extent) for extent in one.shape], "int64") for one in made.outputs]
    given = [nd.array(np.asarray(one, "int64") if isinstance(one, tuple) else one) for one in arguments]
    library["shapes"](*given, *outputs)
    return [tuple(one.numpy().tolist()) for one in outputs]


def test_it_reads_the_shapes_that_it_needs() -> None:
    """A product needs the rows of both sides; a constant shape is not asked for."""
    x, w = unknown("x", None, 5), unknown("w", 3, 5)
    made = shape_function(typed(x, w, body=relay.nn.dense(x, w)))
    assert made.inputs == [ShapeInput(0, is_data=False)]


def test_a_fused_function_is_composed() -> None:
    """Through three operators, in 64 bits."""
    x, y = unknown("x", None, 4), unknown("y", None, 4)
    function = typed(x, y, body=relay.reshape(relay.concatenate([x, relay.exp(y)], 0), (-1,)))
    assert shapes(function, (3, 4), (2, 4)) == [(20,)]
    assert shapes(function, (1 << 33, 4), (0, 4)) == [(1 << 35,)]


def test_results_of_several_shapes() -> None:
    """One vector for each result that is not constant."""
    x = unknown("x", None, None)
    body = relay.Tuple([relay.sum(x, 1), relay.zeros((2,), "float32"), relay.transpose(x)])
    assert shapes(typed(x, body=body), (3, 5)) == [(3,), (5, 3)]


def test_conditions_are_checked() -> None:
    """Shapes that the operator cannot take are an error."""
    x, y = unknown("x", None), unknown("y", None)
    function = typed(x, y, body=x * y)
    assert shapes(function, (1,), (4,)) == [(4,)]
    assert shapes(function, (0,), (1,)) == [(0,)]
    with pytest.raises(RuntimeFailure, match="multiply: dimensions that are neither equal nor one"):
        shapes(function, (2,), (3,))


def test_values_where_the_operator_asks_for_them() -> None:
    """The operator's own shape function, in a function with other operators."""
    x = unknown("x", None, dtype="int32")
    function = typed(x, body=relay.argwhere(x))
    assert shape_function(function).inputs == [ShapeInput(0, is_data=True)]
    assert shapes(function, np.array([0, 4, 0, 7], "int32")) == [(2, 1)]


def test_a_shape_that_is_an_arguments_own() -> None:
    """Elementwise functions need no shape function."""
    x, w = unknown("x", None, 4), unknown("w", 4)
    assert copied_shapes(typed(w, x, body=relay.exp(x) + w)) == [1]
    assert copied_shapes(typed(x, body=relay.sum(x, 1))) == [None]
    assert copied_shapes(typed(x, body=relay.sum(x))) == [None]
