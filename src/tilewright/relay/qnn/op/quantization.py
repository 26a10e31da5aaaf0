"""Between real numbers and integers, and between integers of different scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, along_axis
from tilewright.relay.op.shapes import Dimension, dims, tensor
from tilewright.relay.op.tensor.reference import half_away_from_zero
from tilewright.relay.qnn.op.parameters import (
    Array,
    check_scale,
    check_zero_point,
    fixed_point,
    is_same,
    is_zero,
    limits,
    spread,
    spread_array,
    value_of,
    wide,
)
from tilewright.relay.qnn.op.rules import register_qnn_canonicalize

STORED: Final = ("int8", "uint8", "int16", "int32")
"""The types of quantised tensors."""
ROUNDINGS: Final = ("UPWARD", "TONEAREST", "TOEVEN")
"""What becomes of halves: they are rounded up, away from zero, or to the even integer."""
FIXED_POINT: Final = "int64"
FLOAT: Final = "float32"
"""How integers are multiplied by a ratio of scales: with a fixed-point number of 31 bits, or in float32 as ONNX Runtime
does it, which vector units of CPUs have instructions for."""
_ROUND: Final = {"TONEAREST": "round", "TOEVEN": "nearbyint"}


@attributes
class QuantizeAttrs(OpAttrs):
    """The integer type, the axis along which scales and zero points lie, and what becomes of halves."""

    out_dtype: str = "int8"
    axis: int = -1
    rounding: str = "TONEAREST"


@attributes
class DequantizeAttrs(OpAttrs):
    """The axis along which scales and zero points lie."""

    axis: int = -1


@attributes
class RequantizeAttrs(OpAttrs):
    """The axis along which the input's scales and zero points lie, what becomes of halves, the integer type, and the
    arithmetic that the integers are scaled in."""

    axis: int = -1
    rounding: str = "UPWARD"
    out_dtype: str = "int8"
    compute_dtype: str = FIXED_POINT


def _channels(kind: TensorType, axis: int) -> Dimension | None:
    """The extent of the axis; None of a tensor without any."""
    shape = dims(kind)
    if not shape:
        return None
    if not -len(shape) <= axis < len(shape):
        raise RelationError(f"axis {axis} is out of range for {len(shape)} dimensions")
    return shape[axis]


def _require(dtype: object, allowed: Sequence[str], what: str) -> None:
    if str(dtype) not in allowed:
        raise RelationError(f"{what} is {', '.join(allowed)}, not {dtype}")


# quantize


def _quantize_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _require(data.dtype, ("float32", "float16", "float64"), "the type of the data")
    _require(attrs.out_dtype, STORED, "out_dtype")
    _require(attrs.rounding, tuple(_ROUND), "rounding")
    channels = _channels(data, attrs.axis)
    if not check_scale(types[1], "the scale", channels) or not check_zero_point(
        types[2], "the zero point", channels
    ):
        return None
    return TensorType(data.shape, attrs.out_dtype)


def _quantized(attrs: Any, data: Array, scale: Array, zero_point: Array) -> Array:
    scale, zero_point = (spread_array(one, data.ndim, attrs.axis) for one in (scale, zero_point))
    rounded = np.rint if attrs.rounding == "TOEVEN" else half_away_from_zero
    moved = rounded(data / scale.astype(data.dtype)) + zero_point.astype(data.dtype)
    least, most = limits(attrs.out_dtype)
    return np.asarray(np.nan_to_num(np.clip(moved.astype(np.float64), least, most))).astype(attrs.out_dtype)


def _quantize_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    """``clip(round(data / scale) + zero_point)``; floats that become integers end where the type does."""
    data, scale, zero_point = arguments
    rank, dtype = len(types[0].shape), str(types[0].dtype)
    scale, zero_point = (
        wide(spread(one, kind, rank, attrs.axis), dtype)
        for one, kind in ((scale, types[1]), (zero_point, types[2]))
    )
    moved = call(_ROUND[attrs.rounding], call("divide", data, scale))
    if not is_zero(arguments[2]):
        moved = call("add", moved, zero_point)
    return call("cast", moved, dtype=attrs.out_dtype)


_quantize = define(
    "qnn.quantize",
    arguments=("data", "output_scale", "output_zero_point"),
    attrs=QuantizeAttrs,
    relation=_quantize_relation,
    reference=_quantized,
    kind=OpPattern.OPAQUE,
    level=11,
    description="clip(round(data / output_scale) + output_zero_point) as integers.",
)
register_qnn_canonicalize("qnn.quantize", _quantize_rule)


def quantize(
    data: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "int8",
    rounding: str = "TONEAREST",
) -> Call:
    """Real numbers as integers: ``clip(round(data / output_scale) + output_zero_point)``. Halves are rounded away from
    zero (``TONEAREST``) or to the even integer (``TOEVEN``). Scale and zero point are scalars, or vectors along
    ``axis``."""
    attrs = QuantizeAttrs(out_dtype=out_dtype, axis=axis, rounding=rounding)
    return Call(_quantize, (data, output_scale, output_zero_point), attrs)


# dequantize


def _dequantize_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _require(data.dtype, STORED, "the type of the data")
    channels = _channels(data, attrs.axis)
    if not check_scale(types[1], "the scale", channels) or not check_zero_point(
        types[2], "the zero point", channels
    ):
        return None
    return TensorType(data.shape, "float32")


def _dequantized(attrs: Any, data: Array, scale: Array, zero_point: Array) -> Array:
    scale, zero_point = (spread_array(one, data.ndim, attrs.axis) for one in (scale, zero_point))
    shifted = data.astype(np.int32) - zero_point.astype(np.int32)
    return np.asarray(shifted.astype(np.float32) * scale)


def _dequantize_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    """``(data - zero_point) * scale``."""
    data, scale, zero_point = arguments
    rank = len(types[0].shape)
    shifted = shift_to_zero(data, zero_point, types[2], rank, attrs.axis)
    return call("multiply", call("cast", shifted, dtype="float32"), spread(scale, types[1], rank, attrs.axis))


_dequantize = define(
    "qnn.dequantize",
    arguments=("data", "input_scale", "input_zero_point"),
    attrs=DequantizeAttrs,
    relation=_dequantize_relation,
    reference=_dequantized,
    kind=OpPattern.OPAQUE,
    level=11,
    description="(data - input_zero_point) * input_scale as float32.",
)
register_qnn_canonicalize("qnn.dequantize", _dequantize_rule)


def dequantize(data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr, axis: int = -1) -> Call:
    """Integers as the real numbers that they stand for: ``(data - input_zero_point) * input_scale``."""
    return Call(_dequantize, (data, input_scale, input_zero_point), DequantizeAttrs(axis=axis))


# requantize


def _requantize_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _require(data.dtype, (*STORED, "int64"), "the type of the data")
    _require(attrs.out_dtype, STORED, "out_dtype")
    if attrs.rounding not in ROUNDINGS:
        raise RelationError(f"rounding is {' or '.join(ROUNDINGS)}, not {attrs.rounding!r}")
    _require(attrs.compute_dtype, (FIXED_POINT, FLOAT), "compute_dtype")
    if attrs.compute_dtype == FLOAT:
        _require(attrs.out_dtype, ("int8", "uint8", "int16"), "out_dtype of scaling in float32")
    elif attrs.rounding == "TOEVEN":
        raise RelationError("halves are rounded to even where compute_dtype is float32")
    channels = _channels(data, attrs.axis)
    known = [
        check_scale(types[1], "the input's scale", channels),
        check_zero_point(types[2], "the input's zero point", channels),
        check_scale(types[3], "the output's scale"),
        check_zero_point(types[4], "the output's zero point"),
    ]
    return TensorType(data.shape, attrs.out_dtype) if all(known) else None


def _requantized(
    attrs: Any, data: Array, in_scale: Array, in_zero: Array, out_scale: Array, out_zero: Array
) -> Array:
    shifted = data.astype(np.int64) - spread_array(in_zero, data.ndim, attrs.axis).astype(np.int64)
    if attrs.compute_dtype == FLOAT:
        return _requantized_in_float(attrs, shifted, in_scale, out_scale, out_zero)
    factors = in_scale.astype(np.float64) / out_scale.astype(np.float64).reshape(-1)[0]
    scaled = shifted
    if not (factors == 1).all():
        pairs = [fixed_point(float(one)) for one in factors.reshape(-1)]
        multipliers, shifts = (
            spread_array(np.array(column, np.int64), data.ndim, attrs.axis)
            for column in zip(*pairs, strict=True)
        )
        product = (shifted << np.maximum(shifts, 0)) * multipliers
        down = 31 - np.minimum(shifts, 0)
        half = np.int64(1) << (down - 1)
        if attrs.rounding == "TONEAREST":
            half = half - (product < 0)
        scaled = (product + half) >> down
    least, most = limits(attrs.out_dtype)
    return np.asarray(np.clip(scaled + out_zero.astype(np.int64).reshape(-1)[0], least, most)).astype(
        attrs.out_dtype
    )


def _requantized_in_float(
    attrs: Any, shifted: Array, in_scale: Array, out_scale: Array, out_zero: Array
) -> Array:
    factors = spread_array(in_scale.astype(np.float32), shifted.ndim, attrs.axis) / out_scale.reshape(())
    scaled = shifted.astype(np.int32).astype(np.float32) * factors
    if attrs.rounding == "TOEVEN":
        rounded = np.rint(scaled)
    elif attrs.rounding == "TONEAREST":
        rounded = half_away_from_zero(scaled)
    else:
        rounded = np.floor(scaled + np.float32(0.5))
    moved = rounded + out_zero.astype(np.float32).reshape(())
    return np.asarray(np.clip(moved, *limits(attrs.out_dtype))).astype(attrs.out_dtype)


def _requantize_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    rank = len(types[0].shape)
    return requantized(arguments[0], arguments[1:], types, rank, attrs)


def requantized(
    data: RelayExpr,
    parameters: Sequence[RelayExpr],
    types: Sequence[Any],
    rank: int,
    attrs: RequantizeAttrs,
) -> RelayExpr:
    """The canonical form of ``requantize``: fixed-point arithmetic where the scales are constants, else float32.
    ``types`` are those of the data and of the four parameters."""
    in_scale, in_zero, out_scale, out_zero = parameters
    if attrs.compute_dtype == FLOAT:
        return _scaled_in_float(data, parameters, types, rank, attrs)
    scaled = shift_to_zero(data, in_zero, types[2], rank, attrs.axis)
    if not is_same(in_scale, out_scale):
        scaled = _scaled(scaled, in_scale, out_scale, types, rank, attrs)
    if not is_zero(out_zero):
        scaled = call("add", scaled, wide(spread(out_zero, types[4], 0, 0)))
    if attrs.out_dtype == "int32":
        return scaled
    least, most = limits(attrs.out_dtype)
    return call("cast", call("clip", scaled, a_min=least, a_max=most), dtype=attrs.out_dtype)


def _scaled_in_float(
    data: RelayExpr,
    parameters: Sequence[RelayExpr],
    types: Sequence[Any],
    rank: int,
    attrs: RequantizeAttrs,
) -> RelayExpr:
    """The canonical form of scaling in float32; floats that become integers end where the type does."""
    in_scale, in_zero, out_scale, out_zero = parameters
    shifted = call("cast", shift_to_zero(data, in_zero, types[2], rank, attrs.axis), dtype=FLOAT)
    ratio = call("divide", spread(in_scale, types[1], rank, attrs.axis), spread(out_scale, types[3], 0, 0))
    factor: RelayExpr = ratio
    into, out = value_of(in_scale), value_of(out_scale)
    if into is not None and out is not None:
        # Here, and not by constant folding, which divides by multiplying with the reciprocal.
        factor = const(spread_array(into.astype(np.float32), rank, attrs.axis) / out.reshape(()))
    product = call("multiply", shifted, factor)
    if attrs.rounding == "UPWARD":
        rounded = call("floor", call("add", product, const(0.5, FLOAT)))
    else:
        rounded = call(_ROUND[attrs.rounding], product)
    if not is_zero(out_zero):
        rounded = call("add", rounded, wide(spread(out_zero, types[4], 0, 0), FLOAT))
    return call("cast", rounded, dtype=attrs.out_dtype)


def _scaled(
    data: RelayExpr,
    in_scale: RelayExpr,
    out_scale: RelayExpr,
    types: Sequence[Any],
    rank: int,
    attrs: RequantizeAttrs,
) -> RelayExpr:
    """int32 data times ``in_scale / out_scale``, rounded."""
    into, out = value_of(in_scale), value_of(out_scale)
    if into is None or out is None:
        factor = call(
            "divide", spread(in_scale, types[1], rank, attrs.axis), spread(out_scale, types[3], 0, 0)
        )
        product = call("multiply", call("cast", data, dtype="float32"), factor)
        if attrs.rounding == "TONEAREST":
            return call("cast", call("round", product), dtype="int32")
        return call("cast", call("floor", call("add", product, const(0.5, "float32"))), dtype="int32")
    factors = into.astype(np.float64).reshape(-1) / out.astype(np.float64).reshape(-1)[0]
    if (factors == 1).all():
        return data
    pairs = [fixed_point(float(one)) for one in factors]
    if len(set(pairs)) == 1 and attrs.rounding == "UPWARD":
        return call("fixed_point_multiply", data, multiplier=pairs[0][0], shift=pairs[0][1])
    return _fixed_point_product(data, pairs, rank, attrs)


def _fixed_point_product(
    data: RelayExpr, pairs: Sequence[tuple[int, int]], rank: int, attrs: RequantizeAttrs
) -> RelayExpr:
    """Products with fixed-point numbers in 64 bits, one number for all channels or one for each."""
    if len(set(pairs)) == 1:
        pairs = pairs[:1]
    multipliers, shifts = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    up, down = np.maximum(shifts, 0), 31 - np.minimum(shifts, 0)

    def lying(values: Array) -> RelayExpr:
        return const(spread_array(values, rank, attrs.axis))

    # A product with a power of two instead of a shift: both are constants, and one product does it.
    product = call("multiply", wide(data, "int64"), lying(multipliers << up))
    half: RelayExpr = lying(np.int64(1) << (down - 1))
    if attrs.rounding == "TONEAREST":
        below = call("cast", call("less", product, const(0, "int64")), dtype="int64")
        half = call("subtract", half, below)
    return call("cast", call("right_shift", call("add", product, half), lying(down)), dtype="int32")


def shift_to_zero(data: RelayExpr, zero_point: RelayExpr, kind: Type, rank: int, axis: int) -> RelayExpr:
    """``data - zero_point`` as int32."""
    if is_zero(zero_point):
        return wide(data)
    return call("subtract", wide(data), wide(spread(zero_point, kind, rank, axis)))


def _requantize_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Those of the data, with the axis of the scales moving along; scales and zero points have none."""
    made = along_axis(attrs, offered[:1], original[:1], types[:1])
    return Layouts((*made.inputs, *((None,) * (len(types) - 1))), made.outputs, made.attrs)


_requantize = define(
    "qnn.requantize",
    layout=_requantize_layouts,
    arguments=("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    attrs=RequantizeAttrs,
    relation=_requantize_relation,
    reference=_requantized,
    kind=OpPattern.OPAQUE,
    level=11,
    description="Integers of one scale and zero point as integers of another.",
)
register_qnn_canonicalize("qnn.requantize", _requantize_rule)


def requantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    rounding: str = "UPWARD",
    out_dtype: str = "int8",
    compute_dtype: str = FIXED_POINT,
) -> Call:
    """Integers of one scale and zero point as integers of another. The input's may be vectors along ``axis``. Halves
    are rounded up (``UPWARD``) or away from zero (``TONEAREST``).

    ``compute_dtype`` is what integers are multiplied by the ratio of the scales in: ``int64``, as fixed-point numbers,
    or ``float32``, where halves may also be rounded to the even integer (``TOEVEN``)."""
    return Call(
        _requantize,
        (data, input_scale, input_zero_point, output_scale, output_zero_point),
        RequantizeAttrs(axis=axis, rounding=rounding, out_dtype=out_dtype, compute_dtype=compute_dtype),
    )
