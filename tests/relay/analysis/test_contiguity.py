"""Which results lie in memory as their arguments do: what is said agrees with where the elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import relay
from tilewright.relay.analysis.contiguity import is_contiguous_join, joined_parameters, view_offsets
from tilewright.relay.infer import infer_expr, infer_function
from tilewright.runtime.container import ADT


def function_of(body: Any) -> relay.Function:
    """The function of the free variables of an expression."""
    return infer_function(relay.Function(relay.analysis.free_vars(body), body))


def true_offsets(function: relay.Function) -> list[int] | None:
    """Where the results begin, found by running the function on the numbers of the elements."""
    shape = function.params[0].checked_type.concrete_shape
    numbers = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    results = relay.create_executor("debug").evaluate(function)(numbers)
    offsets = []
    for one in results if isinstance(results, (list, ADT)) else [results]:
        flat = one.numpy().ravel()
        if flat.size == 0 or not np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
            return None
        offsets.append(int(flat[0]))
    return offsets


shapes = st.lists(st.sampled_from([1, 1, 2, 3, 4]), min_size=1, max_size=4)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_slices(data: st.DataObject) -> None:
    """A slice is a view if, and only if, its elements follow one another."""
    shape = data.draw(shapes)
    begin = [data.draw(st.integers(-size, size - 1)) for size in shape]
    end = [data.draw(st.integers(-size, size)) for size in shape]
    steps = [data.draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
    function = function_of(relay.strided_slice(relay.var("x", shape=tuple(shape)), begin, end, steps))
    assert view_offsets(function) == true_offsets(function)


@given(shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_splits_and_transposes(shape: list[int], data: st.DataObject) -> None:
    """A split is a view if every part is one piece; a transposition if it moves axes of one element alone."""
    x = relay.var("x", shape=tuple(shape))
    axis = data.draw(st.integers(0, len(shape) - 1))
    split = relay.split(x, shape[axis], axis).astuple()
    order = data.draw(st.permutations(range(len(shape))))
    for body in (split, relay.transpose(x, order), relay.reshape(relay.transpose(x), (-1,))):
        function = function_of(body)
        assert view_offsets(function) == true_offsets(function)


X = relay.var("x", shape=(1, 32, 1, 1))
IMAGE = relay.var("image", shape=(1, 32, 2, 1))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (relay.layout_transform(X, "NCHW", "NCHW16c"), [0]),
        (relay.layout_transform(X, "NCHW", "NHWC"), [0]),
        (relay.layout_transform(IMAGE, "NCHW", "NCHW16c"), None),
        (relay.layout_transform(IMAGE, "NCHW", "NHWC"), None),
        (relay.split(relay.reshape(X, (4, 8)), 2)[1], [16]),
        (relay.Tuple([relay.split(X, 4, 1)[3], relay.split(X, 4, 1)[1]]), [24, 8]),
        (relay.squeeze(relay.strided_slice(IMAGE, [0, 3, 0, 0], [1, 5, 2, 1])), [6]),
        (relay.reshape(relay.exp(X), (32,)), None),
        (relay.cast(X, "int32"), None),
        (relay.strided_slice(X, [0, 4, 0, 0], [1, 4, 1, 1]), None),
        (X, None),
    ],
)
def test_chains(body: Any, expected: list[int] | None) -> None:
    """Steps of a view add up; one that computes makes it none."""
    function = function_of(body)
    assert view_offsets(function) == expected
    if expected is not None:
        assert true_offsets(function) == expected


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((1, 4, 3), 1, True),
        ((4, 3), 0, True),
        ((2, 4), 1, False),
        ((1, 1, 4), -1, True),
        ((1, 2, 4), 2, False),
    ],
)
def test_joins(shape: tuple[int, ...], axis: int, expected: bool) -> None:
    """Operands follow one another if all axes before have one element; so do those of a stack."""
    x, y = relay.var("x", shape=shape), relay.var("y", shape=shape)
    assert is_contiguous_join(infer_expr(relay.concatenate([x, y], axis))) is expected
    stacked = infer_expr(relay.stack([x, y], axis))
    assert is_contiguous_join(stacked) is all(extent == 1 for extent in shape[: axis % (len(shape) + 1)])
    assert not is_contiguous_join(infer_expr(relay.add(x, y)))


def test_joined_parameters() -> None:
    """In the order of the operands, as often as they stand; none if one of them is computed."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    assert joined_parameters(function_of(relay.concatenate([x, y, x], 0))) == [0, 1, 0]
    assert joined_parameters(function_of(relay.concatenate([x, relay.exp(y)], 0))) is None
    both = relay.var("both", type_annotation=relay.TupleType([relay.TensorType((4,))] * 2))
    assert joined_parameters(function_of(relay.concatenate(both, 0))) == [0, 1]
