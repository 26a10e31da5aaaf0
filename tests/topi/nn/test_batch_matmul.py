"""Products of many matrices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(23)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("batch_a", "batch_b"), [(3, 3), (1, 3), (3, 1), (1, 1)])
def test_transposes_and_broadcasts(transpose_a: bool, transpose_b: bool, batch_a: int, batch_b: int) -> None:
    """Either side transposed; a batch of one serves every matrix of the other."""
    a = RANDOM.standard_normal((batch_a, 4, 5)).astype("float32")
    b = RANDOM.standard_normal((batch_b, 5, 2)).astype("float32")
    made = apply(
        topi.nn.batch_matmul,
        a.transpose(0, 2, 1).copy() if transpose_a else a,
        b.transpose(0, 2, 1).copy() if transpose_b else b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    np.testing.assert_allclose(made, a @ b, rtol=1e-5, atol=1e-6)


def test_symbolic_sizes() -> None:
    """All sizes may be known only when the program runs."""
    a = RANDOM.standard_normal((2, 3, 4)).astype("float32")
    b = RANDOM.standard_normal((2, 5, 4)).astype("float32")
    made = apply(topi.nn.batch_matmul, a, b, symbolic=True)
    np.testing.assert_allclose(made, a @ b.transpose(0, 2, 1), rtol=1e-5, atol=1e-6)


def test_mistakes_are_refused() -> None:
    """Batches and depths that differ."""
    a = te.placeholder((2, 3, 4))
    with pytest.raises(InvalidShapeError, match="batches of batch_matmul"):
        topi.nn.batch_matmul(a, te.placeholder((3, 5, 4)))
    with pytest.raises(InvalidShapeError, match="summed dimensions"):
        topi.nn.batch_matmul(a, te.placeholder((2, 5, 3)))
    with pytest.raises(InvalidShapeError, match="three dimensions"):
        topi.nn.batch_matmul(a, te.placeholder((5, 4)))
