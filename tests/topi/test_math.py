"""Functions of one tensor agree with NumPy and SciPy."""

import numpy as np
import pytest
import scipy.special
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(1)
SIGNED = RANDOM.uniform(-4, 4, (3, 5)).astype("float32")
POSITIVE = RANDOM.uniform(1.01, 6, (3, 5)).astype("float32")
SMALL = RANDOM.uniform(-0.99, 0.99, (3, 5)).astype("float32")
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5], "float32")

CASES = {
    "identity": (lambda x: x, SIGNED),
    "negative": (np.negative, SIGNED),
    "exp": (np.exp, SIGNED),
    "erf": (scipy.special.erf, SIGNED),
    "tanh": (np.tanh, SIGNED),
    "tan": (np.tan, SMALL),
    "cos": (np.cos, SIGNED),
    "cosh": (np.cosh, SIGNED),
    "sin": (np.sin, SIGNED),
    "sinh": (np.sinh, SIGNED),
    "acos": (np.arccos, SMALL),
    "acosh": (np.arccosh, POSITIVE),
    "asin": (np.arcsin, SMALL),
    "asinh": (np.arcsinh, SIGNED),
    "atan": (np.arctan, SIGNED),
    "atanh": (np.arctanh, SMALL),
    "floor": (np.floor, SIGNED),
    "ceil": (np.ceil, SIGNED),
    "trunc": (np.trunc, SIGNED),
    "round": (np.round, SIGNED),
    "nearbyint": (np.rint, SIGNED),
    "sign": (np.sign, SPECIAL),
    "abs": (np.abs, SPECIAL),
    "isnan": (np.isnan, SPECIAL),
    "isfinite": (np.isfinite, SPECIAL),
    "isinf": (np.isinf, SPECIAL),
    "log": (np.log, POSITIVE),
    "log2": (np.log2, POSITIVE),
    "log10": (np.log10, POSITIVE),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "sigmoid": (scipy.special.expit, SIGNED),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    """Each function, element by element, with its tag."""
    reference, data = CASES[name]
    with np.errstate(all="ignore"):
        expected = reference(data.astype("float64"))
    np.testing.assert_allclose(apply(getattr(topi, name), data), expected, rtol=2e-5, atol=1e-6)
    assert getattr(topi, name)(te.placeholder((2,))).op.tag == topi.tag.ELEMWISE


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_float_types(dtype):
    """exp and tanh in half and double precision."""
    data = SIGNED.astype(dtype)
    tolerance = 5e-3 if dtype == "float16" else 1e-12
    for name in ("exp", "tanh"):
        np.testing.assert_allclose(
            apply(getattr(topi, name), data), CASES[name][0](data.astype("float64")), rtol=tolerance
        )


@pytest.mark.parametrize(
    ("name", "reference", "low", "high"),
    [("fast_exp", np.exp, -80, 88), ("fast_tanh", np.tanh, -12, 12), ("fast_erf", scipy.special.erf, -6, 6)],
)
def test_fast_functions(name, reference, low, high):
    """The fast functions are within 5e-7: relative for exp, absolute for the others."""
    data = np.linspace(low, high, 4001).astype("float32")
    expected = reference(data.astype("float64"))
    result = apply(getattr(topi, name), data)
    error = np.abs(result - expected) / (expected if name == "fast_exp" else 1.0)
    assert error.max() < 5e-7


def test_fast_exp_at_the_ends():
    """Beyond the range of float32 the result stays finite and near zero."""
    result = apply(topi.fast_exp, np.array([-1e4, -87.3, 88.3, 1e4], "float32"))
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result[2], np.exp(np.float64(np.float32(88.3))), rtol=1e-6)
    assert 0 < result[0] <= result[1] < 1.3e-38


def test_clip():
    """Limits hold in every type; NaN stays, and limits outside of an integer type are its ends."""
    with_nan = np.array([-3, 0.5, 9, np.nan], "float32")
    np.testing.assert_array_equal(apply(topi.clip, with_nan, a_min=-1, a_max=6), np.clip(with_nan, -1, 6))
    small = np.array([-128, -3, 0, 127], "int8")
    np.testing.assert_array_equal(apply(topi.clip, small, a_min=-2.5, a_max=1e9), [-2, -2, 0, 127])
    unsigned = np.array([0, 7, 255], "uint8")
    np.testing.assert_array_equal(apply(topi.clip, unsigned, a_min=-5, a_max=6.9), [0, 6, 6])


def test_cast_and_reinterpret():
    """A cast keeps the value, a reinterpretation the bits."""
    data = np.array([-2.7, 0.0, 3.9], "float32")
    np.testing.assert_array_equal(apply(topi.cast, data, dtype="int32"), [-2, 0, 3])
    np.testing.assert_array_equal(apply(topi.cast, data, dtype="bool"), [True, False, True])
    np.testing.assert_array_equal(apply(topi.reinterpret, data, dtype="int32"), data.view("int32"))


def test_fixed_point_multiply():
    """Multiplying by 0.75 in Q31, shifted up by one: 1.5 times, rounded."""
    data = np.array([0, 1, 2, 1001, -1001], "int32")
    result = apply(topi.fixed_point_multiply, data, multiplier=int(0.75 * 2**31), shift=1)
    np.testing.assert_array_equal(result, np.floor(data * 1.5 + 0.5).astype("int32"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_ceil_log2(dtype):
    """The exponent of the power of two that is next above."""
    data = np.array([1, 2, 3, 4, 5, 64, 65, 100], dtype)
    np.testing.assert_array_equal(apply(topi.ceil_log2, data), [0, 1, 2, 2, 3, 6, 7, 7])


def test_integer_functions():
    """Integers have signs and magnitudes and are round already."""
    data = np.array([-5, 0, 7], "int32")
    np.testing.assert_array_equal(apply(topi.sign, data), [-1, 0, 1])
    np.testing.assert_array_equal(apply(topi.abs, data), [5, 0, 7])
    np.testing.assert_array_equal(apply(topi.floor, data), data)
    with pytest.raises(ExpressionError, match="floating-point"):
        topi.exp(te.placeholder((2,), "int32"))


def test_symbolic_and_without_dimensions():
    """Shapes may be unknown or empty."""
    np.testing.assert_allclose(apply(topi.exp, SIGNED, symbolic=True), np.exp(SIGNED), rtol=1e-5)
    np.testing.assert_allclose(apply(topi.sqrt, np.float32(4.0)), 2.0)
