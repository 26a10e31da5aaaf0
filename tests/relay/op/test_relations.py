"""Type relations that many operators share: what they give, and what they say where they do not hold."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import relay
from tilewright.ir.expr import SizeVar
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.relations import (
    any_type,
    boolean_result,
    broadcast,
    broadcast_comparison,
    broadcast_integers,
    broadcast_numbers,
    floating_type,
    number_type,
    reduced_axes,
    reduced_shape,
    same_type,
)
from tilewright.relay.ty import IncompleteType, TensorType, TupleType
from tilewright.support.errors import TilewrightError

N = SizeVar("n", "int32")


@pytest.mark.parametrize(
    "relation",
    [same_type, number_type, floating_type, boolean_result, any_type, broadcast, broadcast_numbers],
)
def test_unknown_types_wait(relation: Any) -> None:
    """Nothing follows from a type that inference has yet to find."""
    assert (
        relation([IncompleteType(), IncompleteType()][: 2 if "broadcast" in relation.__name__ else 1], None)
        is None
    )


def test_broadcast_of_known_unknown_and_symbolic_dimensions() -> None:
    """An unknown dimension meets a constant as that constant; a symbolic one stays."""
    left = TensorType((relay.Any(), 1, N, 4))
    made = broadcast([left, TensorType((5, N, 1))], None)
    assert isinstance(made, TensorType)
    assert isinstance(made.shape[0], relay.Any)
    assert made.shape[1].value == 5 and made.shape[2] is N and made.shape[3].value == 4  # type: ignore[attr-defined]


def test_comparison_gives_bool() -> None:
    """The result has the shape of the broadcast."""
    made = broadcast_comparison([TensorType((2, 1)), TensorType((3,))], None)
    assert made == TensorType((2, 3), "bool")


@pytest.mark.parametrize(
    ("relation", "types", "message"),
    [
        (same_type, [TupleType(())], "is a tensor, not"),
        (number_type, [TensorType((2,), "bool")], "numbers are needed"),
        (floating_type, [TensorType((2,), "int32")], "floating-point numbers are needed"),
        (broadcast, [TensorType((2,)), TensorType((3,))], "2 and 3 can not be broadcast"),
        (
            broadcast,
            [TensorType((2,)), TensorType((2,), "int32")],
            "different element types, float32 and int32",
        ),
        (broadcast_numbers, [TensorType((2,), "bool")] * 2, "numbers are needed"),
        (broadcast_integers, [TensorType((2,))] * 2, "integers are needed"),
    ],
)
def test_what_can_never_fit(relation: Any, types: Any, message: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(RelationError, match=message):
        relation(types, None)


@pytest.mark.parametrize(
    ("axis", "exclude", "expected"),
    [
        (None, False, (0, 1, 2)),
        ((), False, (0, 1, 2)),
        (-1, False, (2,)),
        ((2, 0), False, (0, 2)),
        (1, True, (0, 2)),
        ((0, 1, 2), True, ()),
        (None, True, (0, 1, 2)),
    ],
)
def test_reduced_axes(axis: Any, exclude: bool, expected: tuple[int, ...]) -> None:
    """Axes counted from the front; None and no axes are all of them."""
    assert reduced_axes(axis, 3, exclude) == expected


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (1, -2)])
def test_bad_axes(axis: Any) -> None:
    """An axis that is not there, or twice there, is an error."""
    with pytest.raises(RelationError):
        reduced_axes(axis, 3, False)


def test_reduced_shape() -> None:
    """Reduced axes go, or stay with size one."""
    assert reduced_shape((2, N, 4), (0, 2), False) == (N,)
    assert reduced_shape((2, N, 4), (0, 2), True) == (1, N, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: relay.exp(relay.shape_of(x)), "floating-point numbers are needed"),
        (lambda x: relay.sum(x, axis=2), "axis 2 is out of range"),
        (lambda x: relay.topk(x, 4, ret_type="values"), "the first 4 of 3"),
        (lambda x: relay.einsum([x, x], "ij,jk->ik"), "3 and 2"),
        (lambda x: relay.einsum([x], "ijk->i"), "does not name the axes"),
        (lambda x: relay.einsum([x], "ij->ii"), "each once"),
        (lambda x: relay.fixed_point_multiply(x, 1, 0), "int32, not float32"),
        (lambda x: relay.random.threefry_split(x).astuple(), "ten words of uint64"),
        (lambda x: relay.searchsorted(x, relay.const(1.0)), "need as many"),
    ],
)
def test_inference_reports_what_does_not_fit(build: Any, message: str) -> None:
    """A call whose types can never fit is reported by type inference with the relation's own words."""
    x = relay.var("x", shape=(2, 3))
    function = relay.Function([x], build(x))
    with pytest.raises(TilewrightError, match=message):
        relay.transform.InferType()(relay.IRModule.from_expr(function))
