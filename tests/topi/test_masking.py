"""Parts of tensors replaced by position."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

DATA = np.arange(1, 61, dtype="float32").reshape(3, 4, 5)


@pytest.mark.parametrize("axis", [0, 1])
def test_sequence_mask(axis):
    """What lies behind the length of a sequence is replaced."""
    lengths = np.array([0, 2, 9, 1][: DATA.shape[1 - axis]], "int32")
    expected = DATA.copy()
    for number, length in enumerate(lengths):
        np.moveaxis(expected, axis, 0)[length:, number] = -7
    np.testing.assert_array_equal(
        apply(topi.sequence_mask, DATA, lengths, mask_value=-7, axis=axis), expected
    )


def test_sequence_mask_errors():
    """The lengths must fit the batch."""
    with pytest.raises(ExpressionError, match="one length for each"):
        topi.sequence_mask(te.placeholder((3, 4)), te.placeholder((3,), "int32"), axis=0)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_trilu(upper, k):
    """Triangles, with the diagonal given as a number or as data."""
    expected = (np.triu if upper else np.tril)(DATA, k)
    np.testing.assert_array_equal(apply(topi.trilu, DATA, k=k, upper=upper), expected)
    np.testing.assert_array_equal(apply(lambda d, n: topi.trilu(d, n, upper), DATA, np.int64(k)), expected)


@pytest.mark.parametrize("k", [0, 2, -3])
def test_matrix_set_diag(k):
    """One diagonal of every matrix."""
    length = len(np.diagonal(DATA[0], k))
    diagonal = -np.arange(1, 3 * length + 1, dtype="float32").reshape(3, length)
    expected = DATA.copy()
    for matrix, values in zip(expected, diagonal, strict=True):
        for number, value in enumerate(values):
            matrix[number - min(k, 0), number + max(k, 0)] = value
    np.testing.assert_array_equal(apply(topi.matrix_set_diag, DATA, diagonal, k=k), expected)


@pytest.mark.parametrize("align", ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"])
def test_several_diagonals(align):
    """Diagonals -2 to 3, the highest first, each aligned in its row."""
    low, high = -2, 3
    longest = max(len(np.diagonal(DATA[0], k)) for k in range(low, high + 1))
    diagonal = -np.arange(1, 3 * 6 * longest + 1, dtype="float32").reshape(3, 6, longest)
    above, below = align.split("_")
    expected = DATA.copy()
    for k in range(low, high + 1):
        length = len(np.diagonal(DATA[0], k))
        left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
        offset = 0 if left else longest - length
        for number in range(length):
            expected[:, number - min(k, 0), number + max(k, 0)] = diagonal[:, high - k, number + offset]
    np.testing.assert_array_equal(
        apply(topi.matrix_set_diag, DATA, diagonal, k=(low, high), align=align), expected
    )


def test_matrix_set_diag_errors():
    """Diagonals must be given in order and in the right number."""
    data = te.placeholder((3, 4))
    with pytest.raises(ExpressionError, match="ascending"):
        topi.matrix_set_diag(data, te.placeholder((2, 3)), k=(1, 0))
    with pytest.raises(ExpressionError, match="does not hold 2"):
        topi.matrix_set_diag(data, te.placeholder((3, 3)), k=(0, 1))
    with pytest.raises(ExpressionError, match="align"):
        topi.matrix_set_diag(data, te.placeholder((3,)), align="MIDDLE")
