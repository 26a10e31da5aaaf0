"""Arithmetic of two tensors agrees with NumPy for shapes that meet."""

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.support.errors import ExpressionError

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-3, 3, shape).astype("float32")


def integers(*shape: int) -> np.ndarray:
    return RANDOM.integers(1, 9, shape).astype("int32") * RANDOM.choice([-1, 1], shape).astype("int32")


FLOAT_OPERATORS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "mod": np.fmod,
    "floor_mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less": np.less,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
INTEGER_OPERATORS = {
    "add": np.add,
    "divide": lambda a, b: np.trunc(a / b).astype("int32"),
    "floor_divide": np.floor_divide,
    "mod": np.fmod,
    "floor_mod": np.mod,
    "maximum": np.maximum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "equal": np.equal,
}


@pytest.mark.parametrize("name", FLOAT_OPERATORS)
def test_floats(name):
    """Each operator on floats, with a dimension of one on either side, is NumPy's."""
    a, b = floats(2, 1, 3), floats(4, 1)
    a[0, 0, 0], b[1, 0] = 1.5, 1.5
    result = apply(getattr(topi, name), a, b)
    np.testing.assert_allclose(result, FLOAT_OPERATORS[name](a, b), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", INTEGER_OPERATORS)
def test_integers(name):
    """Each operator on integers of either sign is NumPy's, where NumPy has it; divide rounds towards zero."""
    a, b = integers(3, 4), integers(4)
    result = apply(getattr(topi, name), a, b)
    np.testing.assert_array_equal(result, INTEGER_OPERATORS[name](a, b))


@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shifts(name):
    """Shifts by tensors of bits; a negative number keeps its sign on the way down."""
    a, bits = integers(5), np.array([0, 1, 2, 3, 4], "int32")
    np.testing.assert_array_equal(apply(getattr(topi, name), a, bits), getattr(np, name)(a, bits))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integer_power(dtype):
    """Integer powers wrap around as NumPy's do."""
    base = np.array([0, 1, 2, 3, 5, 7, 100], dtype)[:, None]
    exponent = np.array([0, 1, 2, 3, 6, 11], dtype)
    with np.errstate(over="ignore"):
        expected = np.power(base, exponent)
    np.testing.assert_array_equal(apply(topi.power, base, exponent), expected)


def test_integer_power_of_negative_exponent_rounds_towards_zero():
    """One over an integer is zero, but for 1 and -1."""
    base = np.array([0, 1, -1, -1, 2, -3], "int32")
    exponent = np.array([-1, -5, -2, -3, -1, -2], "int32")
    np.testing.assert_array_equal(apply(topi.power, base, exponent), [0, 1, 1, -1, 0, 0])


def test_float_power():
    """Powers of floats."""
    a, b = np.abs(floats(6)) + 0.1, floats(6)
    np.testing.assert_allclose(apply(topi.power, a, b), a**b, rtol=1e-5)


def test_floor_mod_of_floats_is_exact():
    """The remainder of floats loses no digits to cancellation."""
    a, b = np.array([1e7, -1e7, 5.5, -5.5], "float32"), np.array([0.3, 0.3, -2.0, 2.0], "float32")
    np.testing.assert_array_equal(apply(topi.floor_mod, a, b), np.mod(a, b))


def test_scalars():
    """A number on either side meets every element, and two numbers give an expression."""
    a = floats(3)
    np.testing.assert_allclose(apply(lambda x: topi.subtract(1.0, x), a), 1 - a)
    np.testing.assert_allclose(apply(lambda x: topi.divide(x, 4.0), a), a / 4)
    assert topi.add(2, 3).value == 5


def test_tensors_without_dimensions():
    """A tensor without dimensions meets every shape."""
    a, b = np.float32(2.5), floats(2, 2)
    np.testing.assert_allclose(apply(topi.multiply, a, b), a * b)
    assert apply(topi.add, a, a) == 5.0


def test_symbolic_dimensions():
    """Unknown dimensions meet when they are equal, and repeat where one of them turns out to be 1."""
    for first, second in [((3, 4), (3, 4)), ((3, 1), (3, 4)), ((1, 4), (3, 1))]:
        a, b = floats(*first), floats(*second)
        np.testing.assert_allclose(apply(topi.add, a, b, symbolic=True), a + b)


def test_symbolic_against_constant():
    """An unknown dimension against a constant one is equal or 1."""
    for size in (1, 4):
        n = te.var("n")
        a, b = te.placeholder((n,), name="a"), te.placeholder((4,), name="b")
        value, other = floats(size), floats(4)
        result = evaluate(topi.multiply(a, b), {a: value, b: other})
        np.testing.assert_allclose(result, value * other)


def test_empty():
    """Tensors without elements stay so."""
    assert apply(topi.add, floats(0, 3), floats(1, 3)).shape == (0, 3)


def test_broadcast_to():
    """Dimensions of one and missing dimensions repeat."""
    a = floats(3, 1)
    np.testing.assert_array_equal(apply(topi.broadcast_to, a, shape=(2, 3, 4)), np.broadcast_to(a, (2, 3, 4)))
    with pytest.raises(ExpressionError, match="neither equal nor 1"):
        topi.broadcast_to(te.placeholder((3, 2)), (3, 4))
    with pytest.raises(ExpressionError, match="does not fit"):
        topi.broadcast_to(te.placeholder((3, 2)), (2,))
    with pytest.raises(ExpressionError, match="does not fit"):
        topi.broadcast_to(te.placeholder((3, 2)), (3, 1))


def test_not():
    """Logic and bits turned."""
    flags, numbers = np.array([True, False]), np.array([0, 5, -1], "int32")
    np.testing.assert_array_equal(apply(topi.logical_not, flags), ~flags)
    np.testing.assert_array_equal(apply(topi.logical_not, numbers), [True, False, False])
    np.testing.assert_array_equal(apply(topi.bitwise_not, numbers), ~numbers)


def test_shapes_that_do_not_meet():
    """An error names both shapes."""
    with pytest.raises(ExpressionError, match=r"\(2, 3\) and \(2, 4\)"):
        topi.add(te.placeholder((2, 3)), te.placeholder((2, 4)))


def test_tags():
    """Two tensors broadcast; a tensor and a number are element-wise."""
    a = te.placeholder((3,))
    assert topi.add(a, a).op.tag == topi.tag.BROADCAST
    assert topi.add(a, 1.0).op.tag == topi.tag.ELEMWISE
    assert topi.broadcast_to(a, (2, 3)).op.tag == topi.tag.BROADCAST


def test_operators_on_tensors():
    """Python's operators on whole tensors give tensors, on those without dimensions too."""
    a, b = floats(2, 3), floats(3)
    feeds = inputs(a, b)
    x, y = feeds
    result = evaluate((2.0 * x - y) / (y + 10.0) + (-x).astype("float64"), feeds)
    assert result.dtype == "float64"
    np.testing.assert_allclose(result, (2 * a - b) / (b + 10) - a, rtol=1e-5)
    scalar = te.placeholder((), name="scalar")
    more = scalar + 1.0
    assert isinstance(more, te.Tensor) and more.shape == ()


def test_scalars_are_computed_once():
    """Functions of tensors without dimensions are stages of their own, not part of each element that uses them."""
    scalar = te.placeholder((), name="scalar")
    twice = topi.add(scalar, scalar)
    made = topi.multiply(te.placeholder((8,), name="a"), topi.exp(twice))
    (_, power) = made.op.input_tensors
    assert power.op.input_tensors == (twice,)


def test_elemwise_sum():
    """The sum of any number of tensors of one shape."""
    arrays = [np.full((2, 3), value, "float32") for value in (1, 2, 4)]
    np.testing.assert_array_equal(apply(lambda *xs: topi.elemwise_sum(xs), *arrays), np.full((2, 3), 7))
    with pytest.raises(ExpressionError, match="differ"):
        topi.elemwise_sum([te.placeholder((2,)), te.placeholder((3,))])
    with pytest.raises(ExpressionError, match="one tensor or more"):
        topi.elemwise_sum([])
