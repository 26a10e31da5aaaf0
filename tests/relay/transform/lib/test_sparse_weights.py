"""Matrices as blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.relay.transform.lib.sparse_weights import SparseVariables, block_sparse
from tilewright.support.errors import TilewrightError


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1000))
def test_the_blocks_are_those_of_scipy(
    rows: int, columns: int, block_rows: int, block_columns: int, seed: int
) -> None:
    """Values, columns and row starts."""
    generator = np.random.default_rng(seed)
    matrix = generator.standard_normal((rows * block_rows, columns * block_columns)).astype("float32")
    matrix *= generator.random(matrix.shape) < 0.3
    expected = scipy.sparse.bsr_matrix(matrix, blocksize=(block_rows, block_columns))
    expected.sort_indices()
    values, places, starts = block_sparse(matrix, block_rows, block_columns)
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(places, expected.indices)
    np.testing.assert_array_equal(starts, expected.indptr)


def test_blocks_that_do_not_fit() -> None:
    """The error says so."""
    with pytest.raises(TilewrightError, match="4 x 5"):
        block_sparse(np.zeros((4, 5)), 2, 2)


def test_names_without_shapes() -> None:
    """Each weight needs one."""
    with pytest.raises(TilewrightError, match="2 weights"):
        SparseVariables.of(["a", "b"], [[1, 1, 1, 1, 1]])
