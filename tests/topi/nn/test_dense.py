"""Products of matrices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ScheduleError
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(19)


def draw(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("symbolic", [False, True])
def test_matmul(transpose_a: bool, transpose_b: bool, symbolic: bool) -> None:
    """Either side transposed, of constant and of symbolic sizes, with a bias."""
    a, b, bias = draw(3, 5), draw(5, 4), draw(4)
    expected = a @ b + bias
    made = apply(
        topi.nn.matmul,
        a.T.copy() if transpose_a else a,
        b.T.copy() if transpose_b else b,
        bias,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        symbolic=symbolic,
    )
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_dense_with_leading_dimensions() -> None:
    """Data of three dimensions is multiplied along its last."""
    data, weight = draw(2, 3, 5), draw(4, 5)
    np.testing.assert_allclose(apply(topi.nn.dense, data, weight), data @ weight.T, rtol=1e-5, atol=1e-6)


def test_tags() -> None:
    """A dense product is one thing to a schedule, any other matrix product another, and the bias an epilogue."""
    a, b = te.placeholder((3, 5)), te.placeholder((4, 5))
    assert topi.nn.dense(a, b).op.tag == "dense"
    assert topi.nn.matmul(a, te.placeholder((5, 4))).op.tag == "matmul"
    assert topi.nn.dense(a, b, te.placeholder((4,))).op.tag == "broadcast"


def test_packed_weights() -> None:
    """Units in blocks."""
    data, weight = draw(3, 5), draw(8, 5)
    packed = np.ascontiguousarray(weight.reshape(2, 4, 5).transpose(0, 2, 1))
    feeds = inputs(data, packed, draw(8))
    made = topi.nn.dense_pack(*feeds)
    bias = list(feeds.values())[2]
    np.testing.assert_allclose(evaluate(made, feeds), data @ weight.T + bias, rtol=1e-5, atol=1e-6)


def test_types() -> None:
    """Bytes add in int32 where that is asked for; half floats add in float32."""
    a, b = np.full((1, 300), 127, "int8"), np.full((1, 300), 127, "int8")
    assert apply(topi.nn.dense, a, b, out_dtype="int32").item() == 300 * 127 * 127
    ones = np.ones((1, 5000), "float16")
    made = apply(topi.nn.dense, ones, ones)
    assert made.dtype == np.float16 and made.item() == 5000.0


def test_mistakes_are_refused() -> None:
    """Sizes that differ, too many dimensions, a tuner's layout that the weight does not have."""
    a, b = te.placeholder((3, 5)), te.placeholder((4, 6))
    with pytest.raises(InvalidShapeError, match="must be equal"):
        topi.nn.dense(a, b)
    with pytest.raises(InvalidShapeError, match="multiplies matrices"):
        topi.nn.matmul(a, te.placeholder((2, 5, 4)))
    with pytest.raises(InvalidShapeError, match="columns of the product"):
        topi.nn.dense(a, te.placeholder((4, 5)), te.placeholder((3,)))
    with pytest.raises(ScheduleError, match="is not a layout"):
        topi.nn.dense(a, te.placeholder((4, 5)), auto_scheduler_rewritten_layout="k4n")
    with pytest.raises(ScheduleError, match="does not have the layout"):
        topi.nn.dense(a, te.placeholder((4, 5)), auto_scheduler_rewritten_layout="2j5k2j")
