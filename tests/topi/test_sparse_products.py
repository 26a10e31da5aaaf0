"""Products with matrices in compressed rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, topi
from tilewright.support.errors import ExpressionError

MATRIX = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 4]], "float32")


def compressed(nonzeros: int, rows: int, columns: int) -> Any:
    return SimpleNamespace(
        data=te.placeholder((nonzeros,), "float32"),
        indices=te.placeholder((nonzeros,), "int32"),
        indptr=te.placeholder((rows + 1,), "int32"),
        shape=(rows, columns),
        dtype="float32",
    )


def arrays() -> list[Any]:
    rows, columns = np.nonzero(MATRIX)
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(MATRIX, axis=1))])
    return [
        tvm.nd.array(each) for each in (MATRIX[rows, columns], columns.astype("int32"), ends.astype("int32"))
    ]


def run(result: Any, inputs: list[Any], values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    function = tvm.build(te.create_schedule(result.op), [*inputs, result], "llvm")
    out = tvm.nd.array(np.full(shape, np.nan, "float32"))
    function(*values, out)
    return np.asarray(out.numpy())


def test_sparse_times_dense() -> None:
    """With a bias for each row, rows without elements included."""
    sparse, dense, bias = (
        compressed(4, 3, 4),
        te.placeholder((4, 2), "float32"),
        te.placeholder((3,), "float32"),
    )
    values, offsets = np.arange(8, dtype="float32").reshape(4, 2), np.array([1, 2, 3], "float32")
    made = run(
        topi.sparse.csrmm(sparse, dense, bias),
        [sparse.data, sparse.indices, sparse.indptr, dense, bias],
        [*arrays(), tvm.nd.array(values), tvm.nd.array(offsets)],
        (3, 2),
    )
    np.testing.assert_allclose(made, MATRIX @ values + offsets[:, None])
    vector = te.placeholder((4, 1), "float32")
    column = run(
        topi.sparse.csrmv(sparse, vector),
        [sparse.data, sparse.indices, sparse.indptr, vector],
        [*arrays(), tvm.nd.array(values[:, :1].copy())],
        (3, 1),
    )
    np.testing.assert_allclose(column, MATRIX @ values[:, :1])


def test_dense_layers_with_sparse_data_or_weights() -> None:
    """The bias is along the units in both; two dense matrices are refused."""
    sparse, other = compressed(4, 3, 4), te.placeholder((2, 4), "float32")
    values = np.arange(8, dtype="float32").reshape(2, 4)
    parts = [sparse.data, sparse.indices, sparse.indptr]
    units = te.placeholder((2,), "float32")
    as_data = topi.sparse.dense(sparse, other, units)
    biases = np.array([10, 20], "float32")
    made = run(
        as_data, [*parts, other, units], [*arrays(), tvm.nd.array(values), tvm.nd.array(biases)], (3, 2)
    )
    np.testing.assert_allclose(made, MATRIX @ values.T + biases)
    as_weights = topi.sparse.dense(other, sparse)
    made = run(as_weights, [*parts, other], [*arrays(), tvm.nd.array(values)], (2, 3))
    np.testing.assert_allclose(made, values @ MATRIX.T)
    with pytest.raises(ExpressionError, match="one sparse matrix and one dense one"):
        topi.sparse.dense(other, other)
