"""Integers brought to another scale: by shifts where the ratio is a power of two, in fixed point otherwise."""

from __future__ import annotations

import math
from typing import Final

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.op.calls import call
from tilewright.relay.quantize.configuration import QConfig

_WIDE: Final = "int64"
_BITS: Final = 31
_CLOSE: Final = 1e-6


def rescaled(data: RelayExpr, dtype: str, ratio: float, configuration: QConfig) -> RelayExpr:
    """Integers times a ratio, rounded as the configuration says; of ``dtype``, in which they have room."""
    exponent = math.log2(ratio)
    shift = round(exponent)
    if abs(exponent - shift) < _CLOSE:
        return shifted(data, dtype, shift, configuration)
    if ratio == int(ratio):
        return call("multiply", data, const(int(ratio), dtype))
    fraction, shift = math.frexp(ratio)
    multiplier = round(fraction * (1 << _BITS))
    wide = call("multiply", call("cast", data, dtype=_WIDE), const(multiplier, _WIDE))
    return call("cast", _shifted_right(wide, _WIDE, _BITS - shift, configuration.rounding), dtype=dtype)


def shifted(data: RelayExpr, dtype: str, shift: int, configuration: QConfig) -> RelayExpr:
    """Integers times a power of two."""
    if shift == 0:
        return data
    if shift > 0:
        return call("left_shift", data, const(shift, dtype))
    if not configuration.round_for_shift:
        return call("right_shift", data, const(-shift, dtype))
    return _shifted_right(data, dtype, -shift, configuration.rounding)


def _shifted_right(data: RelayExpr, dtype: str, shift: int, rounding: str) -> RelayExpr:
    """Divided by a power of two and rounded, halves upwards or away from zero."""
    if shift <= 0:
        return call("left_shift", data, const(-shift, dtype)) if shift else data
    half = 1 << (shift - 1)
    added: RelayExpr = const(half, dtype)
    if rounding == "TONEAREST":
        negative = call("less", data, const(0, dtype))
        added = call("where", negative, const(half - 1, dtype), const(half, dtype))
    return call("right_shift", call("add", data, added), const(shift, dtype))
