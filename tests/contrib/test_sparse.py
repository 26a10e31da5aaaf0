"""Arrays in compressed rows, and computations over their values."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.contrib import sparse
from tilewright.support.errors import ExpressionError

MATRIX = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3]], "float32")


def test_there_and_back() -> None:
    """From a matrix, and from the three arrays."""
    made = sparse.array(MATRIX)
    assert made.indptr.numpy().tolist() == [0, 1, 1, 3] and made.indices.numpy().tolist() == [1, 0, 2]
    assert np.array_equal(made.numpy(), MATRIX)
    again = sparse.array((made.data, made.indices, made.indptr), shape=MATRIX.shape)
    assert np.array_equal(again.asnumpy(), MATRIX) and again.stype == "csr"


def test_compute_over_values() -> None:
    """A computation of the stored values only, of as many as there are."""
    count = te.size_var("count")
    given = sparse.placeholder((3, 3), nonzeros=count, name="A")
    doubled = te.compute(given.data.shape, lambda i: given.data[i] * 2.0)
    function = tvm.build(te.create_schedule(doubled.op), [given.data, doubled], "llvm")
    values = sparse.array(MATRIX)
    function(values.data, out := tvm.nd.empty(values.data.shape))
    values.data = out
    assert np.array_equal(values.numpy(), MATRIX * 2)


def test_what_is_refused() -> None:
    """Other forms, and other numbers of dimensions."""
    with pytest.raises(ExpressionError, match=r"compressed rows \(csr\), not 'coo'"):
        sparse.array(MATRIX, stype="coo")
    with pytest.raises(ExpressionError, match="two dimensions, not 1"):
        sparse.placeholder((3,))
    with pytest.raises(ExpressionError, match=r"\(data, indices, indptr\) and a shape"):
        sparse.array((1, 2))
