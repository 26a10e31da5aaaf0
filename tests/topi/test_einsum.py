"""Sums of products agree with NumPy's einsum."""

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(5)
CASES = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ji,jk->ki", [(2, 3), (2, 4)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("b...ij,b...jk->b...ik", [(2, 3, 2, 3), (2, 3, 3, 2)]),
    ("...ij,jk->...ik", [(2, 5, 2, 3), (3, 4)]),
    ("...i,...i", [(4, 3), (2, 1, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("ij,ij,ij->i", [(2, 3), (2, 3), (2, 3)]),
    ("a b c , c b -> a", [(2, 3, 4), (4, 3)]),
    (",ij->ij", [(), (2, 3)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
]


@pytest.mark.parametrize(("formula", "shapes"), CASES)
def test_einsum(formula, shapes):
    """Products, traces, transposes, broadcasts and chains."""
    arrays = [RANDOM.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    result = apply(lambda *tensors: topi.einsum(formula, *tensors), *arrays)
    np.testing.assert_allclose(result, np.einsum(formula, *arrays), rtol=1e-5, atol=1e-6)


def test_operands_as_a_list_and_unknown_sizes():
    """A list of operands, with symbolic dimensions that are the same variable."""
    a, b = RANDOM.uniform(-1, 1, (3, 4)).astype("float32"), RANDOM.uniform(-1, 1, (4, 2)).astype("float32")
    result = apply(lambda x, y: topi.einsum("ij,jk->ik", [x, y]), a, b, symbolic=True)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)


def test_errors():
    """Formulas must fit the operands."""
    a = te.placeholder((2, 3))
    for formula in ("ijk->i", "i->i", "ij,jk->ik", "ij->k", "ij->ii", "i1->i"):
        with pytest.raises(ExpressionError, match="einsum"):
            topi.einsum(formula, a)
