"""Rules of SimplifyExpr for arithmetic: remove identities, and fold consecutive constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import known
from tilewright.relay.transform.fold_constant import folded
from tilewright.relay.transform.lib.rewriting import is_call, scalar_value, shape_of, tensor_of
from tilewright.support.dtype import DataType

_EXACT_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def is_lossless(source: DataType, result: DataType) -> bool:
    """True if every value of one type has its exact counterpart in another."""
    if source == result or source.is_bool:
        return True
    if source.is_float:
        if not result.is_float:
            return False
        narrow, wide = _EXACT_BITS.get(str(source)), _EXACT_BITS.get(str(result))
        # bfloat16 has fewer digits than float16, and a larger range.
        return narrow is not None and wide is not None and result.bits > source.bits and wide >= narrow
    signed = str(source).startswith("int")
    if result.is_float:
        return source.bits - signed <= _EXACT_BITS.get(str(result), 0)
    if result.is_bool:
        return False
    if str(result).startswith("uint"):
        return not signed and result.bits >= source.bits
    return result.bits >= source.bits if signed else result.bits > source.bits


def _dtype(expr: RelayExpr) -> DataType:
    return DataType(tensor_of(expr).dtype)


def conversion(expr: Call) -> RelayExpr | None:
    """To the type that is there; and after one that lost nothing."""
    if _dtype(expr) == _dtype(expr.args[0]):
        return expr.args[0]
    inner = expr.args[0]
    if isinstance(inner, Call) and is_call(inner, "cast"):
        if is_lossless(_dtype(inner.args[0]), _dtype(inner)):
            return call("cast", inner.args[0], dtype=str(_dtype(expr)))
    return None


def conversion_like(expr: Call) -> RelayExpr | None:
    """The type is known without the tensor that has it."""
    return call("cast", expr.args[0], dtype=str(_dtype(expr)))


def uniform(expr: RelayExpr) -> Any:
    """The number that all elements are; None where they are not known to be one."""
    if isinstance(expr, Call):
        if is_call(expr, "zeros", "zeros_like", "ones", "ones_like"):
            number = 1 if is_call(expr, "ones", "ones_like") else 0
            return float(number) if _dtype(expr).is_float else number
        if is_call(expr, "full"):
            return scalar_value(expr.args[0])
        if is_call(expr, "full_like"):
            return scalar_value(expr.args[1])
    return scalar_value(expr)


def _leaves_shape(expr: Call, data: RelayExpr, other: RelayExpr) -> bool:
    """True if the result has the shape of one operand, whatever the other."""
    if shape_of(other) == ():
        return True
    shape = shape_of(expr)
    return known(*shape) and shape == shape_of(data)


NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1, "floor_divide": 1, "power": 1}
COMMUTATIVE = ("add", "multiply", "maximum", "minimum")


def with_uniform(expr: Call) -> RelayExpr | None:
    """An operand that is one number: it may change nothing, or be a scalar."""
    name = str(getattr(expr.op, "name", ""))
    for place in (1, 0):
        data, other = expr.args[1 - place], expr.args[place]
        number = uniform(other)
        if number is None or not _leaves_shape(expr, data, other):
            continue
        whole = not _dtype(expr).is_float
        if number == NEUTRAL.get(name) and (place == 1 or name in COMMUTATIVE):
            if whole or _changes_no_float(name, number, data):
                return data
        if name == "multiply" and number == 0 and whole and known(*shape_of(expr)):
            return call("zeros", shape=shape_of(expr), dtype=str(_dtype(expr)))
        if shape_of(other) != ():
            scalar = const(number, str(_dtype(other)))
            return expr.replace(args=(data, scalar) if place == 1 else (scalar, data))
    return None


SUMS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul", "sum")
"""They add to zero, which gives no minus zero."""


def _changes_no_float(name: str, number: float, data: RelayExpr) -> bool:
    """True if a neutral number is neutral for floats too: a sum with zero turns minus zero, and a floor division by one
    rounds down."""
    if name in ("add", "subtract"):
        keeps_zeros = (math.copysign(1.0, number) < 0) is (name == "add")
        return keeps_zeros or (isinstance(data, Call) and is_call(data, *SUMS))
    return name != "floor_divide"


def _with_constant(expr: RelayExpr, name: str) -> tuple[RelayExpr, Constant] | None:
    """The operands of a call with one constant."""
    if not isinstance(expr, Call) or not is_call(expr, name):
        return None
    first, second = expr.args
    if isinstance(second, Constant) and not isinstance(first, Constant):
        return first, second
    return (second, first) if isinstance(first, Constant) and not isinstance(second, Constant) else None


def constants_in_a_row(expr: Call) -> RelayExpr | None:
    """``(x + a) + b`` is ``x + (a + b)``, and so for products, unless the new constant is larger than both."""
    name = str(getattr(expr.op, "name", ""))
    outer = _with_constant(expr, name)
    inner = _with_constant(outer[0], name) if outer is not None else None
    if outer is None or inner is None:
        return None
    first, second = inner[1], outer[1]
    both = folded(call(name, first, second))
    if not isinstance(both, Constant):
        return None
    sizes = [math.prod(each.data.shape) for each in (first, second, both)]
    if sizes[2] > max(sizes[:2]) or not _in_range(name, first, second, both):
        return None
    return call(name, inner[0], both)


def _in_range(name: str, first: Constant, second: Constant, both: Constant) -> bool:
    """False where two factors, or two terms, are fine but together are too large or too small."""
    values = both.data.numpy()
    if values.dtype.kind != "f":
        return True
    if not np.isfinite(values).all():
        return False
    if name != "multiply":
        return True
    nonzero = (first.data.numpy() != 0) & (second.data.numpy() != 0)
    return bool((np.abs(values[np.broadcast_to(nonzero, values.shape)]) >= np.finfo(values.dtype).tiny).all())


def reciprocal(divisor: RelayExpr, exact: bool) -> Constant | None:
    """One over a constant, if all of it is in the range of normal numbers; ``exact``: if it has no rounding either."""
    if not isinstance(divisor, Constant):
        return None
    values = divisor.data.numpy()
    if values.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        inverse = (1 / values).astype(values.dtype)
    tiny = np.finfo(values.dtype).tiny
    for numbers in (values, inverse):
        if not (np.isfinite(numbers) & (np.abs(numbers) >= tiny)).all():
            return None
    if exact and not (np.abs(np.frexp(values)[0]) == 0.5).all():
        return None
    return const(inverse, str(_dtype(divisor)))


def division(expr: Call) -> RelayExpr | None:
    """Dividing by a power of two is multiplying by its reciprocal, to the last bit."""
    factor = reciprocal(expr.args[1], exact=True)
    return None if factor is None else call("multiply", expr.args[0], factor)


def decided(expr: Call) -> RelayExpr | None:
    """A choice that is the same for all elements."""
    condition = uniform(expr.args[0])
    if condition is None:
        return None
    shape, taken = shape_of(expr), expr.args[1 if condition else 2]
    return taken if known(*shape) and shape == shape_of(taken) else None


def twice(expr: Call) -> RelayExpr | None:
    """An operator that undoes itself."""
    inner = expr.args[0]
    name = str(getattr(expr.op, "name", ""))
    if isinstance(inner, Call) and is_call(inner, name) and _dtype(inner.args[0]) == _dtype(expr):
        return inner.args[0]
    return None


def again(expr: Call) -> RelayExpr | None:
    """An operator that changes nothing the second time."""
    return expr.args[0] if is_call(expr.args[0], str(getattr(expr.op, "name", ""))) else None


def like(expr: Call) -> RelayExpr | None:
    """A tensor like another, of which only the shape matters: it is known."""
    shape = shape_of(expr)
    if not known(*shape):
        return None
    name, dtype = str(getattr(expr.op, "name", "")), str(_dtype(expr))
    if name in ("zeros_like", "ones_like"):
        return call(name.removesuffix("_like"), shape=shape, dtype=dtype)
    if name == "full_like":
        return call("full", expr.args[1], shape=shape, dtype=dtype)
    if name == "broadcast_to_like":
        return call("broadcast_to", expr.args[0], shape=shape)
    if name == "reshape_like" and 0 not in shape:
        return call("reshape", expr.args[0], newshape=shape)
    return None


BINARY = (
    *NEUTRAL,
    "maximum",
    "minimum",
    "mod",
    "floor_mod",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
)
LIKE = ("zeros_like", "ones_like", "full_like", "broadcast_to_like", "reshape_like")

RULES = {
    **{name: (with_uniform,) for name in BINARY},
    **{name: (with_uniform, constants_in_a_row) for name in ("add", "multiply")},
    "divide": (with_uniform, division),
    "where": (decided,),
    **{name: (like,) for name in LIKE},
    "cast": (conversion,),
    "cast_like": (conversion_like,),
    "negative": (twice,),
    "logical_not": (twice,),
    "nn.relu": (again,),
    "floor": (again,),
    "ceil": (again,),
    "round": (again,),
    "nearbyint": (again,),
    "abs": (again,),
}
