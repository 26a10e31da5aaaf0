"""Scattered updates."""

import numpy as np
import pytest
from tests.topi.running import apply

import tilewright as tvm
from tilewright import te, topi
from tilewright.support.cbuild import has_compiler
from tilewright.support.errors import ExpressionError
from tilewright.tir.interpreter import interpret

RANDOM = np.random.default_rng(6)


def reference(data, indices, updates, axis, add=False):
    result = data.copy()
    for place in np.ndindex(*indices.shape):
        index = indices[place]
        if -data.shape[axis] <= index < data.shape[axis]:
            target = (*place[:axis], index, *place[axis + 1 :])
            result[target] = result[target] + updates[place] if add else updates[place]
    return result


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((6,), 0), ((4, 130), 0), ((4, 5), 1), ((3, 4, 2), 0), ((3, 4, 2), 1), ((2, 3, 2, 2), 3)],
)
@pytest.mark.parametrize(("add", "symbolic"), [(False, False), (True, True)])
def test_scatter(shape, axis, add, symbolic):
    """Later updates win, or all are added; indices from the back count, those outside do not."""
    data = RANDOM.integers(0, 9, shape).astype("float32")
    smaller = tuple(max(1, extent - (position != axis)) for position, extent in enumerate(shape))
    indices = RANDOM.integers(-shape[axis] - 1, shape[axis] + 1, smaller).astype("int64")
    updates = RANDOM.integers(10, 99, smaller).astype("float32")
    operator = topi.scatter_add if add else topi.scatter
    result = apply(operator, data, indices, updates, axis=axis, symbolic=symbolic)
    np.testing.assert_array_equal(result, reference(data, indices, updates, axis, add))


@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
def test_scatter_nd(mode):
    """Slices at index vectors, of which one is outside and one comes twice."""
    data = np.arange(24, dtype="float32").reshape(3, 4, 2)
    indices = np.array([[0, 2, 0, 7], [1, -1, 1, 0]], "int32")
    updates = 100 * np.arange(1, 9, dtype="float32").reshape(4, 2)
    expected = data.copy()
    combine = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}.get(mode)
    for number, (i, j) in enumerate(indices.T[:3]):
        expected[i, j] = combine(expected[i, j], updates[number]) if combine else updates[number]
    np.testing.assert_array_equal(apply(topi.scatter_nd, data, indices, updates, mode=mode), expected)


def test_scatter_nd_of_single_elements():
    """Index vectors as long as the shape."""
    data = np.zeros((2, 3), "int32")
    indices = np.array([[[0, 1]], [[2, 0]]], "int64")
    updates = np.array([[5, 6]], "int32")
    np.testing.assert_array_equal(
        apply(topi.scatter_nd, data, indices, updates, mode="update"), [[0, 0, 5], [6, 0, 0]]
    )


def test_errors():
    """Shapes, types and modes are checked."""
    data, indices = te.placeholder((3, 4)), te.placeholder((2, 4), "int32")
    with pytest.raises(ExpressionError, match="differ in shape"):
        topi.scatter(data, indices, te.placeholder((3, 4)))
    with pytest.raises(ExpressionError, match="int32 for data of float32"):
        topi.scatter(data, indices, te.placeholder((2, 4), "int32"))
    with pytest.raises(ExpressionError, match="must be integers"):
        topi.scatter_add(data, te.placeholder((2, 4)), te.placeholder((2, 4)))
    with pytest.raises(ExpressionError, match="mode is one of"):
        topi.scatter_nd(data, indices, te.placeholder((4,)), "average")
    with pytest.raises(ExpressionError, match="must have the shape"):
        topi.scatter_nd(data, indices, te.placeholder((5,)), "add")


@pytest.mark.parametrize("target", ["llvm", "c", "interpreter"])
@pytest.mark.parametrize("operator", [topi.scatter_add, topi.scatter_nd])
def test_in_place(operator, target, tmp_path):
    """Given one memory for data and result, kernels change only what is updated, and leave the rest as it is."""
    shapes = [(5, 3), (2, 3), (2, 3)] if operator is topi.scatter_add else [(5, 3), (1, 2), (2, 3)]
    tensors = [
        te.placeholder(shape, dtype, name=name)
        for shape, dtype, name in zip(shapes, ("float32", "int64", "float32"), "dis", strict=True)
    ]
    result = operator(*tensors, 0) if operator is topi.scatter_add else operator(*tensors, "add")
    lowered = tvm.lower(te.create_schedule(result.op), [*tensors, result], name="update")
    data = np.arange(15, dtype="float32").reshape(5, 3)
    indices = np.broadcast_to(np.array([[3], [3]]), (2, 3)) if operator is topi.scatter_add else [[3, 3]]
    indices = np.ascontiguousarray(indices, "int64")
    updates = np.array([[1, 2, 3], [10, 20, 30]], "float32")
    expected = data.copy()
    expected[3] += updates.sum(0)
    if target == "interpreter":
        interpret(lowered["update"], data, indices, updates, data)
        np.testing.assert_array_equal(data, expected)
        return
    if target == "c" and not has_compiler():
        pytest.skip("the C source needs a C compiler")
    shared = tvm.nd.array(data)
    function = tvm.build(lowered, target=target)
    if target == "c":
        function.export_library(str(tmp_path / "update.so"))
        function = tvm.runtime.load_module(str(tmp_path / "update.so"))
    function["update"](shared, tvm.nd.array(indices), tvm.nd.array(updates), shared)
    np.testing.assert_array_equal(shared.numpy(), expected)
