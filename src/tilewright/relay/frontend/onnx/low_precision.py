"""Low-precision element types, of eight bits and fewer, for which the compiler has no arithmetic.

A tensor of such a type is carried by int8 or uint8: integers as their values, floating-point numbers as their bits. The
importer remembers what a carrier means (``GraphImporter.low_precision``), operators that only move elements preserve
that meaning, and ``decoded`` and ``encoded`` convert from and to ordinary numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.support.errors import ModelError


@dataclass(frozen=True)
class LowPrecisionType:
    """A low-precision type. ``element_type`` is its number in ONNX."""

    name: str
    element_type: int
    bits: int

    @property
    def carrier(self) -> str:
        """The type of the tensors that hold it."""
        return "uint8"


@dataclass(frozen=True)
class LowPrecisionInteger(LowPrecisionType):
    """Integers of two or four bits."""

    signed: bool

    @property
    def carrier(self) -> str:
        """The type of the tensors that hold it."""
        return "int8" if self.signed else "uint8"

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest."""
        half = 1 << (self.bits - 1)
        return (-half, half - 1) if self.signed else (0, 2 * half - 1)


@dataclass(frozen=True)
class LowPrecisionFloat(LowPrecisionType):
    """Numbers with a sign, an exponent and a fraction.

    ``largest`` is the code of the largest finite number; ``infinity`` and ``nan`` are those of what their names say,
    None where the type has no such thing. Types in which the code of minus zero is the NaN have one zero.
    """

    fraction: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)

    @property
    def one_zero(self) -> bool:
        """True if there is no minus zero."""
        return self.nan == self.sign


@dataclass(frozen=True)
class LowPrecisionExponent(LowPrecisionType):
    """Powers of two from 2**-127 to 2**127, and NaN (the last code)."""


_TYPES = (
    LowPrecisionFloat("float8e4m3fn", 17, 8, fraction=3, bias=7, largest=0x7E, nan=0x7F),
    LowPrecisionFloat("float8e4m3fnuz", 18, 8, fraction=3, bias=8, largest=0x7F, nan=0x80),
    LowPrecisionFloat("float8e5m2", 19, 8, fraction=2, bias=15, largest=0x7B, infinity=0x7C, nan=0x7E),
    LowPrecisionFloat("float8e5m2fnuz", 20, 8, fraction=2, bias=16, largest=0x7F, nan=0x80),
    LowPrecisionInteger("uint4", 21, 4, signed=False),
    LowPrecisionInteger("int4", 22, 4, signed=True),
    LowPrecisionFloat("float4e2m1", 23, 4, fraction=1, bias=1, largest=0x7),
    LowPrecisionExponent("float8e8m0", 24, 8),
    LowPrecisionInteger("uint2", 25, 2, signed=False),
    LowPrecisionInteger("int2", 26, 2, signed=True),
    LowPrecisionFloat("float6e2m3", 27, 6, fraction=3, bias=1, largest=0x1F),
    LowPrecisionFloat("float6e3m2", 28, 6, fraction=2, bias=3, largest=0x1F),
)
LOW_PRECISION_TYPES: dict[int, LowPrecisionType] = {each.element_type: each for each in _TYPES}
"""The low-precision types by their number in ONNX."""

MOVING_OPERATORS = frozenset(
    {
        *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice"),
        *("Expand", "Tile", "Gather", "GatherElements", "GatherND", "Where", "DepthToSpace", "SpaceToDepth"),
        *("Compress", "ReverseSequence", "Pad", "TensorScatter", "Trilu"),
    }
)
"""Operators whose results are elements of their arguments, or zero."""

AWARE_OPERATORS = frozenset(
    {
        *("Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "Constant", "Shape", "Size"),
        *("IsNaN", "IsInf"),
        *("If", "ConstantOfShape", "SequenceConstruct", "SequenceAt", "Optional"),
    }
)
"""Operators that look at what a carrier means, or do not look at elements at all."""


# Values


def to_carrier(value: np.ndarray[Any, Any], low_precision: LowPrecisionType) -> np.ndarray[Any, Any]:
    """The carrier of an array of a low-precision type, in the form in which the ``onnx`` package gives it."""
    if isinstance(low_precision, LowPrecisionInteger):
        return value.astype(low_precision.carrier)
    if value.dtype.itemsize != 1:
        raise ModelError(
            f"this version of the onnx package does not support {low_precision.name}: install onnx 1.19 or later"
        )
    return value.view(np.uint8)


def from_carrier(value: np.ndarray[Any, Any], element_type: int) -> np.ndarray[Any, Any]:
    """An array of a low-precision type, in the form that the ``onnx`` package uses, from its carrier; arrays of other
    types as they are."""
    low_precision = LOW_PRECISION_TYPES.get(element_type)
    if low_precision is None:
        return value
    import onnx

    kind = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    return value.astype(kind) if isinstance(low_precision, LowPrecisionInteger) else value.view(kind)


@cache
def decoding_table(low_precision: LowPrecisionType) -> np.ndarray[Any, Any]:
    """The numbers that the codes stand for, in float32."""
    codes = np.arange(1 << low_precision.bits)
    if isinstance(low_precision, LowPrecisionExponent):
        return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes - 127)).astype("float32")
    assert isinstance(low_precision, LowPrecisionFloat)
    magnitude = codes & (low_precision.sign - 1)
    exponent, fraction = magnitude >> low_precision.fraction, magnitude & ((1 << low_precision.fraction) - 1)
    lead = (exponent > 0) << low_precision.fraction
    power = np.maximum(exponent, 1) - low_precision.bias - low_precision.fraction
    value = np.ldexp((lead + fraction).astype("float64"), power)
    if low_precision.infinity is not None:
        value = np.where(magnitude == low_precision.infinity, np.inf, value)
    if low_precision.nan is not None and not low_precision.one_zero:
        value = np.where(
            (magnitude > low_precision.largest) & (magnitude != low_precision.infinity), np.nan, value
        )
    signed = np.where(codes & low_precision.sign != 0, -value, value)
    if low_precision.one_zero:
        signed = np.where(codes == low_precision.nan, np.nan, signed)
    return np.asarray(signed, dtype="float32")


# Expressions


def decoded(data: RelayExpr, low_precision: LowPrecisionType) -> RelayExpr:
    """Ordinary numbers from a carrier: float32, or the carrier itself where it holds integers."""
    if isinstance(low_precision, LowPrecisionInteger):
        return data
    return relay.take(const(decoding_table(low_precision)), relay.cast(data, "int32"))


def encoded(
    data: RelayExpr, low_precision: LowPrecisionType, saturate: bool = True, rounding: str = "up"
) -> RelayExpr:
    """The carrier of numbers: floats from float32, integers from int32 (of which the low bits count)."""
    if isinstance(low_precision, LowPrecisionInteger):
        return _encoded_integer(data, low_precision)
    if isinstance(low_precision, LowPrecisionExponent):
        return _encoded_exponent(data, saturate, rounding)
    assert isinstance(low_precision, LowPrecisionFloat)
    return _encoded_float(data, low_precision, saturate)


def _number(value: int) -> RelayExpr:
    return const(np.asarray(value, dtype="int32"))


def _encoded_integer(data: RelayExpr, low_precision: LowPrecisionInteger) -> RelayExpr:
    low = relay.bitwise_and(data, _number((1 << low_precision.bits) - 1))
    if low_precision.signed:
        half = _number(1 << (low_precision.bits - 1))
        low = relay.subtract(relay.bitwise_xor(low, half), half)
    return relay.cast(low, low_precision.carrier)


def _encoded_exponent(data: RelayExpr, saturate: bool, rounding: str) -> RelayExpr:
    """The exponent of float32, which is that of the type, and one more where it is rounded up; the sign is lost."""
    bits = relay.reinterpret(data, "int32")
    exponent = relay.bitwise_and(relay.right_shift(bits, _number(23)), _number(0xFF))
    fraction = relay.bitwise_and(bits, _number((1 << 23) - 1))
    half = _number(1 << 22)
    if rounding == "up":
        up = relay.greater(fraction, _number(0))
    elif rounding == "nearest":
        up = relay.logical_or(
            relay.greater(fraction, half),
            relay.logical_and(relay.equal(fraction, half), relay.greater(exponent, _number(0))),
        )
    elif rounding == "down":
        up = relay.less(fraction, _number(0))
    else:
        raise ModelError(f"rounding {rounding!r} is not up, down or nearest")
    code = relay.add(exponent, relay.cast(up, "int32"))
    if saturate:
        code = relay.minimum(code, _number(0xFE))
    special = relay.equal(exponent, _number(0xFF))
    return relay.cast(relay.where(special, _number(0xFF), code), "uint8")


def _encoded_float(data: RelayExpr, low_precision: LowPrecisionFloat, saturate: bool) -> RelayExpr:
    """Rounded to the nearest, halfway to the even one."""
    bits = relay.reinterpret(data, "int32")
    magnitude = relay.bitwise_and(bits, _number(0x7FFFFFFF))
    drop = 23 - low_precision.fraction
    odd = relay.bitwise_and(relay.right_shift(magnitude, _number(drop)), _number(1))
    carried = relay.add(relay.add(magnitude, _number((1 << (drop - 1)) - 1)), odd)
    normal = relay.subtract(
        relay.right_shift(carried, _number(drop)),
        _number((127 - low_precision.bias) << low_precision.fraction),
    )
    # Below the least normal number, codes count the least number that there is.
    bound = const(2.0 ** (1 - low_precision.bias), "float32")
    size = relay.abs(data)
    steps = relay.multiply(
        relay.minimum(size, bound), const(2.0 ** (low_precision.bias - 1 + low_precision.fraction), "float32")
    )
    small = relay.cast(relay.nearbyint(steps), "int32")
    code = relay.where(relay.less(size, bound), small, normal)
    beyond = relay.greater(code, _number(low_precision.largest))
    kept = low_precision.infinity is not None and not saturate
    code = relay.where(
        beyond,
        _number(low_precision.infinity if kept and low_precision.infinity else low_precision.largest),
        code,
    )
    negative = relay.less(bits, _number(0))
    if low_precision.one_zero:
        negative = relay.logical_and(negative, relay.greater(code, _number(0)))
    code = relay.bitwise_or(code, relay.where(negative, _number(low_precision.sign), _number(0)))
    if low_precision.nan is not None:
        lost = relay.isnan(data)
        if not saturate and not kept:
            lost = relay.logical_or(lost, beyond)
        code = relay.where(lost, _number(low_precision.nan), code)
    else:
        # What is not a number becomes a zero, with the other sign.
        zero = relay.where(relay.less(bits, _number(0)), _number(0), _number(low_precision.sign))
        code = relay.where(relay.isnan(data), zero, code)
    return relay.cast(code, "uint8")


__all__ = [
    "AWARE_OPERATORS",
    "MOVING_OPERATORS",
    "LOW_PRECISION_TYPES",
    "LowPrecisionExponent",
    "LowPrecisionFloat",
    "LowPrecisionInteger",
    "LowPrecisionType",
    "decoded",
    "decoding_table",
    "encoded",
    "from_carrier",
    "to_carrier",
]
