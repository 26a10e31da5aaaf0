"""Quantising and dequantising: the building blocks of the operators of quantised models.

A quantised tensor represents ``(q - zero_point) * scale``. Scale and zero point are one per tensor, one per index along
an axis, or one per block along an axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.low_precision import (
    LOW_PRECISION_TYPES,
    LowPrecisionInteger,
    LowPrecisionType,
    decoded,
    round_half_even,
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
    place = axis % rank if -rank <= axis < rank else -1
    if place < 0:
        raise node.fail(f"axis {axis} is out of range for {rank} dimensions")
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
    whole = converted(node, round_half_even(steps, dtype), "float64" if dtype == "float64" else "float32")
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


def scalar_quantized(
    node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None, kind: Quantized
) -> RelayExpr:
    """As ``quantized``, with one scale for the whole tensor."""
    one_zero = None if zero is None else aligned(node, zero, data, 0)
    return quantized(node, data, aligned(node, scale, data, 0), one_zero, kind)


def scalar_dequantized(node: Node, data: RelayExpr, scale: RelayExpr, zero: RelayExpr | None) -> RelayExpr:
    """As ``dequantized``, with one scale for the whole tensor, in float32."""
    one_zero = None if zero is None else aligned(node, zero, data, 0)
    return dequantized(node, data, aligned(node, scale, data, 0), one_zero, "float32")
