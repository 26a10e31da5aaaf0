"""The runtime's sorting, called from compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import sort


def run(outputs: te.Tensor | list[te.Tensor], *inputs: tuple[te.Tensor, np.ndarray]) -> list[np.ndarray]:
    """The values of some tensors."""
    wanted = outputs if isinstance(outputs, list) else [outputs]
    function = tvm.build(
        te.create_schedule(wanted[0].op), [*(tensor for tensor, _ in inputs), *wanted], "llvm"
    )
    given = [tvm.nd.array(value) for _, value in inputs]
    made = [tvm.nd.empty(tuple(int(extent) for extent in one.shape), one.dtype) for one in wanted]
    function(*given, *made)
    return [one.numpy() for one in made]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "float64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_orders(dtype: str, axis: int) -> None:
    """Along any axis; equal values keep their order."""
    values = np.random.default_rng(1).integers(0, 9, (4, 7, 5)).astype(dtype)
    data = te.placeholder(values.shape, dtype, "data")
    (positions,) = run(sort.argsort(data, axis=axis), (data, values))
    assert np.array_equal(positions, np.argsort(values, axis=axis, kind="stable"))
    (ordered,) = run(sort.sort(data, axis=axis, is_ascend=False), (data, values))
    assert np.array_equal(ordered, np.flip(np.sort(values, axis=axis), axis))


def test_special_values() -> None:
    """NaN is above infinity, and the two zeros are equal."""
    values = np.array([np.nan, 0.0, -np.inf, -0.0, np.inf, -1e-310], "float64")
    data = te.placeholder(values.shape, "float64", "data")
    assert run(sort.argsort(data, dtype="int64"), (data, values))[0].tolist() == [2, 5, 1, 3, 4, 0]


def test_the_valid_part_of_a_row() -> None:
    """Positions behind it are their own."""
    values = np.array([[1, 3, 2, 9], [4, 5, 6, 7]], "float32")
    data, count = te.placeholder(values.shape, name="data"), te.placeholder((2,), "int32", "count")
    made = sort.argsort(data, count, is_ascend=False)
    (positions,) = run(made, (data, values), (count, np.array([3, 0], "int32")))
    assert positions.tolist() == [[1, 2, 0, 3], [0, 1, 2, 3]]


def test_the_first_few() -> None:
    """Values, positions, or both."""
    values = np.random.default_rng(2).permutation(24).reshape(2, 3, 4).astype("float32")
    data = te.placeholder(values.shape, name="data")
    first, positions = run(sort.topk(data, 2, axis=1), (data, values))
    expected = np.argsort(-values, axis=1)[:, :2]
    assert np.array_equal(positions, expected)
    assert np.array_equal(first, np.take_along_axis(values, expected, 1))
    (only,) = run(sort.topk(data, 0, axis=-1, ret_type="values", is_ascend=True), (data, values))
    assert np.array_equal(only, np.sort(values))


def test_bad_arguments() -> None:
    """Errors that say what was wrong."""
    data = te.placeholder((3,), name="data")
    with pytest.raises(tvm.TVMError, match="axis 4 of a tensor of 1 dimensions"):
        run(sort.argsort(data, axis=4), (data, np.zeros(3, "float32")))
    with pytest.raises(tvm.TVMError, match="both, values or indices, not 'all'"):
        sort.topk(data, ret_type="all")
    with pytest.raises(tvm.TVMError, match="the first 5 of 3 values"):
        run(sort.topk(data, 5, ret_type="indices"), (data, np.zeros(3, "float32")))
