"""Products of matrices and tensors."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize("transp_a", [False, True])
@pytest.mark.parametrize("transp_b", [False, True])
def test_matmul(transp_a, transp_b):
    """Either matrix may be given transposed."""
    a, b = floats(3, 5), floats(5, 4)
    left, right = (a.T.copy() if transp_a else a), (b.T.copy() if transp_b else b)
    result = apply(topi.matmul, left, right, transp_a=transp_a, transp_b=transp_b, symbolic=True)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    ("axes", "first", "second"),
    [
        (0, (2, 3), (4,)),
        (1, (2, 3), (3, 4)),
        (2, (2, 3, 4), (3, 4, 5)),
        (((0, 2), (1, 0)), (2, 3, 4), (4, 2)),
        (((1,), (-1,)), (2, 3), (4, 3)),
    ],
)
def test_tensordot(axes, first, second):
    """So many axes, or pairs of them."""
    a, b = floats(*first), floats(*second)
    np.testing.assert_allclose(apply(topi.tensordot, a, b, axes=axes), np.tensordot(a, b, axes), rtol=1e-5)


def test_types():
    """float16 is added up in float32; integers stay integers."""
    ones = np.ones((1, 4096), "float16")
    assert apply(topi.matmul, ones, ones, transp_b=True)[0, 0] == 4096
    a, b = np.array([[1, 2]], "int32"), np.array([[3], [4]], "int32")
    assert apply(topi.matmul, a, b)[0, 0] == 11


def test_errors_and_tags():
    """Inner dimensions must agree."""
    with pytest.raises(ExpressionError, match="3 columns"):
        topi.matmul(te.placeholder((2, 3)), te.placeholder((4, 2)))
    with pytest.raises(ExpressionError, match="takes matrices"):
        topi.matmul(te.placeholder((2,)), te.placeholder((2, 2)))
    with pytest.raises(ExpressionError, match="differ"):
        topi.tensordot(te.placeholder((2, 3)), te.placeholder((2, 3)), 1)
    assert topi.matmul(te.placeholder((2, 3)), te.placeholder((3, 2))).op.tag == "matmul"
