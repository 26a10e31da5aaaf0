"""The eight-bit floats: e4m3 has no infinity, and e5m2 is the upper half of a float16."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import numpy as np

_LAYOUTS: Final = {"e4m3": (3, 7), "e5m2": (2, 15)}
"""The bits of the mantissa, and the bias of the exponent."""


@cache
def _table(kind: str) -> np.ndarray[Any, Any]:
    """The number that each pattern of bits stands for."""
    return np.array([_decode(bits, kind) for bits in range(256)], np.float32)


def _decode(bits: int, kind: str) -> float:
    digits, bias = _LAYOUTS[kind]
    sign, exponent, mantissa = bits >> 7, bits >> digits & (127 >> digits), bits & ((1 << digits) - 1)
    if exponent == 127 >> digits and (kind == "e5m2" or mantissa == (1 << digits) - 1):
        special = math.inf if kind == "e5m2" and mantissa == 0 else math.nan
        return -special if sign else special
    if exponent == 0:
        value = math.ldexp(mantissa, 1 - bias - digits)
    else:
        value = math.ldexp((1 << digits) + mantissa, exponent - bias - digits)
    return -value if sign else value


def decode(bits: Any, kind: str) -> Any:
    """The numbers that bits stand for."""
    return _table(kind)[np.asarray(bits, np.uint8)]


def encode(value: float, kind: str) -> int:
    """The bits of the nearest number, ties to even; what is too large becomes the largest."""
    if math.isnan(value):
        return 0x7F
    table = _table(kind)[:128].astype(np.float64)
    finite = np.flatnonzero(np.isfinite(table))
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    distance = np.abs(table[finite] - abs(float(value)))
    nearest = finite[distance == distance.min()]
    return sign | int(next((one for one in nearest if one % 2 == 0), nearest[0]))
