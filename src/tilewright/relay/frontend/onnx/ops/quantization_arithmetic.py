"""Quantising and dequantising: the building blocks of the operators of quantised models.

A quantised tensor represents ``(q - zero_point) * scale``. Scale and zero point are one per tensor, one per index along
an axis, or one per block along an axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.onnx.low_precision import (
    LOW_PRECISION_TYPES,
    LowPrecisionInteger,
    LowPrecisionType,
    decoded,
)
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted, ordinary, to_low_precision
from tilewright.relay.frontend.onnx.tensors import dtype_name


@dataclass(frozen=True)
class Quantized:
    """An element type of quantised tensors: an ordinary integer, or a low-precision type and its carrier."""

    dtype: str
    low_precision: LowPrecisionType | None = None

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        if isinstance(self.low_precision, LowPrecisionInteger):
            return self.low_precision.limits
        found = np.iinfo(self.dtype)
        return int(found.min), int(found.max)

    @property
    def is_integer(self) -> bool:
        """True if elements are integers."""
        return self.low_precision is None or isinstance(self.low_precision, LowPrecisionInteger)


def quantized_of(node: Node, like: RelayExpr) -> Quantized:
    """The element type of a tensor."""
    return Quantized(node.dtype(like), node.low_precision(like))


def quantized_type(element_type: int) -> Quantized:
    """The element type of a number of ONNX."""
    return Quantized(dtype_name(element_type), LOW_PRECISION_TYPES.get(element_type))


def aligned(node: Node, parameter: RelayExpr, data: RelayExpr, axis: int, block: int = 0) -> RelayExpr:
    """A scale or zero point in a shape that broadcasts to the data's."""
    rank, own = node.rank(data), node.rank(parameter)
    if own == 0:
        return parameter
    if own == 1 and node.shape(parameter) == (1,):
        return relay.reshape(parameter, ())
    place = node.from_front(axis, rank)
    if own == 1 and not block:
        after = rank - 1 - place
        return relay.expand_dims(parameter, 1, after) if after else parameter
    if own != rank or block < 1:
        raise node.fail(f"a scale of {own} dimensions does not fit data of {rank} with block_size {block}")
    extent = node.shape(data)[place]
    repeated = relay.repeat(parameter, block if extent is None else min(block, max(extent, 1)), place)
    if node.shape(repeated)[place] == extent is not None:
        return repeated
    return relay.slice_like(repeated, data, axes=[place])


@dataclass(frozen=True)
class Known:
    """A scale and a zero point that are known now: scalars, or vectors along an axis."""

    scale: Constant
    zero: Constant
    axis: int = -1

    @property
    def is_scalar(self) -> bool:
        """True for one scale and one zero point."""
        return self.scale.data.shape == self.zero.data.shape == ()


def known_parameters(
    node: Node, scale: RelayExpr, zero: RelayExpr | None, axis: int = -1, rank: int = 0
) -> Known | None:
    """The parameters of an operator of the quantised dialect; None where they are known only when the program runs, or
    are of other types than the dialect's."""
    scales, zeros = node.value(scale), np.asarray(0) if zero is None else node.value(zero)
    if scales is None or zeros is None or scales.dtype != np.float32 or zeros.dtype.kind not in "iu":
        return None
    if any(each.ndim > 1 or (each.ndim == 1 and each.size == 0) for each in (scales, zeros)):
        return None
    if not (np.isfinite(scales) & (scales > 0)).all() or zeros.dtype.itemsize > 4:
        return None
    of_axis = scales.size > 1 or zeros.size > 1
    if of_axis and not -rank <= axis < rank:
        return None
    scales, zeros = (each.reshape(()) if each.size == 1 else each for each in (scales, zeros))
    return Known(const(scales), const(zeros.astype("int32")), axis % rank if of_axis else -1)


def quantized(
    node: Node,
    data: RelayExpr,
    scale: RelayExpr,
    zero: RelayExpr | None,
    kind: Quantized,
    precision: str = "",
    saturate: bool = True,
) -> RelayExpr:
    """The nearest quantised number, halfway the even one; ``scale`` and ``zero`` broadcast to the data. The quotient is
    of the scale's type, or of ``precision``."""
    dtype = precision or node.dtype(scale)
    steps = relay.divide(converted(node, data, dtype), converted(node, scale, dtype))
    if not kind.is_integer:
        assert kind.low_precision is not None
        if zero is not None and kind.low_precision.bits < 8:
            steps = relay.add(steps, converted(node, ordinary(node, zero), dtype))
        return to_low_precision(node, steps, kind.low_precision, saturate)
    whole = converted(node, relay.nearbyint(steps), "float64" if dtype == "float64" else "float32")
    if zero is not None:
        # The carrier of a low-precision integer is its value.
        whole = relay.add(whole, relay.cast(zero, node.dtype(whole)))
    low, high = kind.limits
    return node.graph.mark(relay.cast(relay.clip(whole, low, high), kind.dtype), kind.low_precision)


def shifted(node: Node, data: RelayExpr, zero: RelayExpr | None) -> RelayExpr:
    """The difference from the zero point, as int32."""
    wide = converted(node, data, "int32")
    known = node.value(zero)
    if zero is None or (known is not None and not known.any()):
        return wide
    return relay.subtract(wide, relay.cast(zero, "int32"))


def dequantized(
    node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None, dtype: str = ""
) -> RelayExpr:
    """The numbers that a quantised tensor stands for, in the scale's type or another one."""
    low_precision = node.low_precision(data)
    own = node.dtype(scale)
    wide = "float64" if own == "float64" else "float32"
    if low_precision is not None and not isinstance(low_precision, LowPrecisionInteger):
        numbers = decoded(data, low_precision)
    else:
        numbers = shifted(node, data, zero)
    made = relay.multiply(converted(node, numbers, wide), converted(node, scale, wide))
    return converted(node, made, dtype or own)


STORED: Final = (Quantized("int8"), Quantized("uint8"))
"""Element types of quantised tensors in the quantised dialect."""


def is_dialect(node: Node, kind: Quantized, data: RelayExpr, scale: RelayExpr) -> bool:
    """True if the quantised dialect can quantise to this type."""
    return kind in STORED and node.dtype(data) == node.dtype(scale) == "float32"


def scalar_quantized(
    node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None, kind: Quantized
) -> RelayExpr:
    """As ``quantized``, with one scale for the whole tensor."""
    known = known_parameters(node, scale, zero)
    if known is not None and known.is_scalar and is_dialect(node, kind, data, scale):
        return relay.qnn.op.quantize(data, known.scale, known.zero, out_dtype=kind.dtype, rounding="TOEVEN")
    one_zero = None if zero is None else aligned(node, zero, data, 0)
    return quantized(node, data, aligned(node, scale, data, 0), one_zero, kind)


def scalar_dequantized(node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None) -> RelayExpr:
    """As ``dequantized``, with one scale for the whole tensor, in float32."""
    known = known_parameters(node, scale, zero)
    if known is not None and known.is_scalar and quantized_of(node, data) in STORED:
        return relay.qnn.op.dequantize(data, known.scale, known.zero)
    one_zero = None if zero is None else aligned(node, zero, data, 0)
    return dequantized(node, data, aligned(node, scale, data, 0), one_zero, "float32")
