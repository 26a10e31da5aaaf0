"""The built-in functions of hybrid script: each with its expression and the Python function that emulates it.

Names of loops (``parallel``, ``bind``, ...) and of memory (``allocate``, ``output_tensor``) have no expression: the
parser handles them. Emulated loops run serially, threads included.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import TargetError
from tilewright.target import Target
from tilewright.tir import op
from tilewright.tir.stmt import ForKind

LOOP_KINDS = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
}
"""Loops that take ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``."""

_UNARY = (
    *("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "tan", "cos", "cosh", "sin", "sinh", "tanh"),
    *("floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
)
_INVERSE = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
CASTS = tuple(
    f"{kind}{bits}"
    for kind in ("int", "uint", "float")
    for bits in (8, 16, 32, 64)
    if f"{kind}{bits}" != "float8"
)


def max_num_threads(allow_none: bool = True) -> int:
    """The most threads of a block on the target of the ``with`` block around."""
    target = Target.current(allow_none)
    if target is None:
        raise TargetError("max_num_threads needs a target: call inside of 'with tvm.target.Target(...)'")
    return int(target.max_num_threads)


def ceil_div(a: Any, b: Any) -> PrimExpr:
    """The quotient of integers, rounded up."""
    return operators.floordiv(operators.add(a, operators.subtract(b, 1)), b)


def _cast_expression(name: str) -> Callable[[Any], PrimExpr]:
    return lambda value: operators.cast(name, value)


def _expressions() -> dict[str, Callable[..., Any]]:
    made: dict[str, Callable[..., Any]] = {name: getattr(op, name) for name in (*_UNARY, *_INVERSE)}
    made.update({name: _cast_expression(name) for name in (*CASTS, "bool")})
    made.update(
        rsqrt=op.rsqrt,
        sigmoid=op.sigmoid,
        erf=op.erf,
        power=op.power,
        pow=op.power,
        atan2=op.atan2,
        fmod=op.fmod,
        round=op.round,
        abs=op.abs,
        popcount=op.popcount,
        clz=op.clz,
        likely=op.likely,
        min=lambda *values: reduce(operators.minimum, values),
        max=lambda *values: reduce(operators.maximum, values),
        ceil_div=ceil_div,
        truncdiv=operators.truncdiv,
        truncmod=operators.truncmod,
        floordiv=operators.floordiv,
        floormod=operators.floormod,
    )
    return made


EXPRESSIONS: Mapping[str, Callable[..., Any]] = _expressions()
"""The compiled form of a call of the script."""


def _zeros(shape: Any, dtype: Any = "float32", scope: str = "global") -> npt.NDArray[Any]:
    """New memory. It starts with zeros, compiled or emulated."""
    kind = numpy_dtype(DataType(str(np.dtype(dtype)) if isinstance(dtype, (np.dtype, type)) else str(dtype)))
    extents = shape if isinstance(shape, (tuple, list)) else (shape,)
    return np.zeros(tuple(int(extent) for extent in extents), kind)


def _bind(tag: str, extent: int) -> Iterable[int]:
    return range(int(extent))


def _grid(*extents: int) -> Iterable[tuple[int, ...]]:
    return itertools.product(*[range(extent) for extent in extents])


def _cast_number(name: str) -> Callable[[Any], Any]:
    kind = np.dtype(name)

    def cast(value: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(kind)[()]

    return cast


def _round(value: Any) -> Any:
    """The nearest integer; halfway, the one farther from zero, as machine code does."""
    if not isinstance(value, (float, np.floating)):
        return value
    whole = np.trunc(value)
    return whole + np.copysign(whole.dtype.type(1), value) if abs(value - whole) >= 0.5 else whole


def _in_own_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of floats that gives its first argument's type back."""

    def applied(value: Any, *others: Any) -> Any:
        made = function(value, *others)
        return value.dtype.type(made) if isinstance(value, np.generic) else made

    return applied


def _popcount(value: Any) -> int:
    bits = value.dtype.itemsize * 8 if isinstance(value, np.generic) else 64
    return (int(value) % (1 << bits)).bit_count()


def _clz(value: Any) -> int:
    bits = value.dtype.itemsize * 8 if isinstance(value, np.generic) else 32
    return bits - (int(value) % (1 << bits)).bit_length()


def _truncdiv(a: Any, b: Any) -> Any:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _emulated() -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys((*LOOP_KINDS, "const_range"), range)
    made.update({name: getattr(np, name) for name in _UNARY} | _INVERSE)
    made.update({name: _cast_number(name) for name in (*CASTS, "bool")})
    made.update(
        bind=_bind,
        grid=_grid,
        allocate=_zeros,
        output_tensor=_zeros,
        rsqrt=lambda x: np.reciprocal(np.sqrt(x)),
        sigmoid=_in_own_type(lambda x: 1.0 / (1.0 + np.exp(-x))),
        erf=_in_own_type(lambda x: math.erf(x)),
        power=np.power,
        pow=np.power,
        atan2=np.arctan2,
        fmod=np.fmod,
        round=_round,
        abs=abs,
        popcount=_popcount,
        clz=_clz,
        likely=lambda condition: condition,
        min=min,
        max=max,
        len=len,
        ceil_div=lambda a, b: (a + b - 1) // b,
        truncdiv=_truncdiv,
        truncmod=lambda a, b: a - _truncdiv(a, b) * b,
        floordiv=lambda a, b: a // b,
        floormod=lambda a, b: a % b,
        max_num_threads=max_num_threads,
    )
    return made


EMULATED: Mapping[str, Any] = _emulated()
"""The functions of the language while a script runs in Python."""
