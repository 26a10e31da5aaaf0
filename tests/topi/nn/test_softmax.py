"""Softmax and its logarithm, against SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from tests.topi.running import apply, evaluate, inputs

import tilewright as tvm
from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

RANDOM = np.random.default_rng(41)


@pytest.mark.parametrize(("axis", "symbolic"), [(-1, False), (0, True), (1, False), (2, True)])
def test_every_axis(axis: int, symbolic: bool) -> None:
    """Rows along any axis sum to one."""
    data = (RANDOM.standard_normal((3, 4, 5)) * 3).astype("float32")
    feeds = inputs(data, symbolic=symbolic)
    made = evaluate([topi.nn.softmax(*feeds, axis), topi.nn.log_softmax(*feeds, axis)], feeds)
    np.testing.assert_allclose(made[0], softmax(data.astype("float64"), axis=axis), rtol=1e-5)
    np.testing.assert_allclose(made[1], log_softmax(data.astype("float64"), axis=axis), rtol=1e-5, atol=1e-6)


def test_large_numbers_do_not_overflow() -> None:
    """The largest is subtracted first."""
    data = np.array([[1000.0, 999.0, -1000.0]], "float32")
    np.testing.assert_allclose(apply(topi.nn.softmax, data), softmax(data, axis=-1), rtol=1e-5)
    made = apply(topi.nn.log_softmax, data)
    np.testing.assert_allclose(made, log_softmax(data.astype("float64"), axis=-1), rtol=1e-5)


@pytest.mark.parametrize("operator", [topi.nn.softmax, topi.nn.log_softmax])
def test_half_floats(operator: Any) -> None:
    """Three thousand equal numbers share one, computed in float32."""
    data = np.zeros((1, 3000), "float16")
    made = apply(operator, data)
    expected = 1 / 3000 if operator is topi.nn.softmax else -np.log(3000)
    assert made.dtype == np.float16
    np.testing.assert_allclose(made.astype("float64"), expected, rtol=1e-3)


def test_half_floats_are_exact_to_their_last_bit() -> None:
    """Over rows whose probabilities have every size that float16 has."""
    data = (RANDOM.standard_normal((5, 64)) * 6).astype("float16")
    exact = softmax(data.astype("float64"), axis=-1)
    np.testing.assert_allclose(apply(topi.nn.softmax, data), exact, rtol=6e-4, atol=6e-8)
    assert np.isnan(apply(topi.nn.softmax, np.array([[1, np.nan]], "float16"))).all()


def test_fast_exponential() -> None:
    """Close, not exact."""
    data = (RANDOM.standard_normal((4, 9)) * 2).astype("float32")
    made = apply(topi.nn.fast_softmax, data, axis=1)
    np.testing.assert_allclose(made, softmax(data, axis=1), rtol=1e-3, atol=1e-6)


def test_tags_and_mistakes() -> None:
    """Schedules know both by their tags; an axis must exist."""
    data = te.placeholder((2, 3))
    assert topi.nn.softmax(data, 0).op.tag == "softmax_output"
    assert topi.nn.softmax(data, 0).op.attrs["axis"] == 0
    assert topi.nn.log_softmax(data).op.tag == "log_softmax_output"
    with pytest.raises(InvalidShapeError, match="axis 2 of a tensor of 2 dimensions"):
        topi.nn.softmax(data, 2)


def test_elements_are_divided_where_reciprocals_are_not_wanted() -> None:
    """With MultiplyByReciprocal disabled every element is a rounded quotient; the sum here is known exactly."""
    feeds = inputs(np.zeros((1, 3), "float32"))

    def third() -> Any:
        return evaluate([topi.nn.softmax(*feeds)], feeds)[0]

    with tvm.transform.PassContext(disabled_pass=["MultiplyByReciprocal"]):
        np.testing.assert_array_equal(third(), np.full((1, 3), np.float32(1) / np.float32(3)))
        feeds = inputs(np.zeros((1, 49), "float32"))
        divided = third()
    assert (divided == np.float32(1) / np.float32(49)).all()
    data = np.log(np.arange(1, 42, dtype="float32"))[None]
    feeds = inputs(data)
    product = third()
    with tvm.transform.PassContext(disabled_pass=["MultiplyByReciprocal"]):
        assert (third() != product).any()
