"""Recipes of the operators that compute each element from elements at the same place."""

from __future__ import annotations

from typing import Any

from tests.relay.random_program.evaluation import Value
from tests.relay.random_program.generator import (
    ANYTHING,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Generator,
    recipe,
)

from tilewright.relay.expr import const
from tilewright.relay.op import nn, tensor, transform

SMOOTH: dict[str, tuple[float, float]] = {
    "log": (0.2, 9),
    "log2": (0.2, 9),
    "log10": (0.2, 9),
    "exp": (-3, 3),
    "sqrt": (0.1, 9),
    "rsqrt": (0.3, 9),
    "sigmoid": (-5, 5),
    "erf": (-3, 3),
    "sin": (-3, 3),
    "cos": (-3, 3),
    "tan": (-1, 1),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atan": (-4, 4),
    "sinh": (-2, 2),
    "cosh": (-2, 2),
    "tanh": (-4, 4),
    "asinh": (-3, 3),
    "acosh": (1.2, 4),
    "atanh": (-0.9, 0.9),
}
"""Operators of floats, and the range in which they are well conditioned."""


def _smooth(name: str) -> None:
    low, high = SMOOTH[name]

    @recipe(name)
    def make(g: Generator) -> Any:
        return getattr(tensor, name)(g.tensor(FLOATS, low=low, high=high).expr)


def _unary(name: str, dtypes: tuple[str, ...], function: Any) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        return function(g.tensor(dtypes).expr)


for _name in SMOOTH:
    _smooth(_name)
for _name in ("abs", "negative", "sign"):
    _unary(_name, NUMBERS, getattr(tensor, _name))
for _name in ("floor", "ceil", "trunc", "round"):
    _unary(_name, FLOATS, getattr(tensor, _name))
for _name in ("isnan", "isinf", "isfinite"):
    _unary(_name, FLOATS, getattr(tensor, _name))
for _name in ("copy", "zeros_like", "ones_like", "shape_of", "ndarray_size"):
    _unary(_name, ANYTHING, getattr(tensor, _name))
for _name in ("fast_exp", "fast_tanh", "fast_erf"):
    _unary(_name, ("float32",), getattr(tensor, _name))
_unary("logical_not", ("bool",), tensor.logical_not)
_unary("bitwise_not", INTEGERS, tensor.bitwise_not)
_unary("nn.relu", NUMBERS, nn.relu)
_unary("nn.dropout", FLOATS, nn.dropout)


@recipe("clip")
def clip(g: Generator) -> Any:
    """Bounds that cut some elements off."""
    low = g.random.uniform(-1, 0.5)
    return tensor.clip(g.tensor(NUMBERS).expr, low, low + g.random.uniform(0.1, 2))


@recipe("nn.leaky_relu")
def leaky_relu(g: Generator) -> Any:
    """A slope between nothing and one."""
    return nn.leaky_relu(g.tensor(FLOATS).expr, g.random.uniform(0, 1))


@recipe("fixed_point_multiply")
def fixed_point_multiply(g: Generator) -> Any:
    """A multiplier with its highest bit set, as quantisation makes them."""
    data = g.fresh(g.shape(), "int32", -1000, 1000)
    return tensor.fixed_point_multiply(data.expr, g.integer(2**30, 2**31 - 1), g.integer(-8, 3))


@recipe("cast")
def cast(g: Generator) -> Any:
    """Between element types that hold the values."""
    data = g.tensor(ANYTHING)
    options = [name for name in ANYTHING if name != data.dtype]
    if not data.within(0, 100):
        options = [name for name in options if name != "uint8"]
    if not data.within(-100, 100):
        options = [name for name in options if name != "int8"]
    return transform.cast(data.expr, g.choice(options))


@recipe("cast_like")
def cast_like(g: Generator) -> Any:
    """To the type of another tensor."""
    data, like = g.tensor(FLOATS), g.tensor(FLOATS)
    return transform.cast_like(data.expr, like.expr)


@recipe("reinterpret")
def reinterpret(g: Generator) -> Any:
    """Bits of a float as those of an integer; of inputs alone, since no rounding is allowed."""
    data = g.fresh(g.shape(), "float32")
    return transform.reinterpret(data.expr, g.choice(["int32", "uint32"]))


def partner(
    g: Generator, value: Value, low: float | None = None, high: float | None = None, same: bool = False
) -> Value:
    """Another operand, whose shape can be broadcast with the first one's."""
    wanted = value.shape
    if not same and g.chance(0.5):
        kept = g.integer(0, value.rank)
        wanted = tuple(1 if g.chance(0.3) else extent for extent in value.shape[value.rank - kept :])
        if kept == value.rank and value.rank < 4 and g.chance(0.3):
            wanted = (g.integer(1, 3), *wanted)
    return g.tensor((value.dtype,), shape=wanted, low=low, high=high)


def _swapped(g: Generator, function: Any, first: Value, second: Value) -> Any:
    return function(second.expr, first.expr) if g.chance(0.3) else function(first.expr, second.expr)


def _binary(name: str, dtypes: tuple[str, ...]) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        first = g.tensor(dtypes)
        return _swapped(g, getattr(tensor, name), first, partner(g, first))


for _name in ("add", "subtract", "multiply", "maximum", "minimum"):
    _binary(_name, NUMBERS)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _binary(_name, NUMBERS)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _binary(_name, ("bool",))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _binary(_name, INTEGERS)


def _quotient(name: str) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        first = g.tensor(FLOATS if name == "divide" else FLOATS + ("int32", "int64"))
        if first.dtype in FLOATS:
            return getattr(tensor, name)(first.expr, partner(g, first, 0.5, 3).expr)
        shape = tuple(1 if g.chance(0.3) else extent for extent in first.shape)
        return getattr(tensor, name)(first.expr, g.fresh(shape, first.dtype, 1, 5).expr)


for _name in ("divide", "floor_divide", "floor_mod", "mod"):
    _quotient(_name)


@recipe("power")
def power(g: Generator) -> Any:
    """Positive numbers to small powers."""
    base = g.tensor(FLOATS, low=0.5, high=2)
    return tensor.power(base.expr, partner(g, base, -2, 2).expr)


def _shift(name: str) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        data = g.tensor(("int32", "int64"))
        return getattr(tensor, name)(data.expr, g.fresh(data.shape, data.dtype, 0, 4).expr)


for _name in ("left_shift", "right_shift"):
    _shift(_name)


@recipe("where")
def where(g: Generator) -> Any:
    """By a condition that may have to be broadcast."""
    first = g.tensor(ANYTHING)
    condition = g.tensor(("bool",), shape=tuple(1 if g.chance(0.2) else n for n in first.shape))
    return transform.where(condition.expr, first.expr, partner(g, first, same=True).expr)


@recipe("nn.bias_add", "nn.prelu")
def along_an_axis(g: Generator) -> Any:
    """A vector along one axis."""
    data = g.tensor(FLOATS, rank=(2, 3, 4))
    axis = g.integer(-data.rank, data.rank - 1)
    vector = g.tensor((data.dtype,), shape=(data.shape[axis],))
    return g.choice([nn.bias_add, nn.prelu])(data.expr, vector.expr, axis=axis)


@recipe("full_like", "full")
def full(g: Generator) -> Any:
    """One number everywhere."""
    data = g.tensor(FLOATS)
    number = g.tensor((data.dtype,), shape=())
    if g.chance(0.5):
        return transform.full_like(data.expr, number.expr)
    return transform.full(number.expr, g.shape(), data.dtype)


@recipe("add", "multiply")
def with_constant(g: Generator) -> Any:
    """What simplification looks for: neutral and other constants."""
    data = g.tensor(FLOATS)
    number = const(g.choice([0.0, 1.0, -1.0, 2.0, 0.5]), data.dtype)
    return _swapped(g, g.choice([tensor.add, tensor.multiply]), data, Value(number, number.data.numpy()))
