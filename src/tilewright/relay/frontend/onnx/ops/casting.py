"""Operators that change the element type."""

from __future__ import annotations

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.low_precision import (
    LOW_PRECISION_TYPES,
    LowPrecisionInteger,
    LowPrecisionType,
    decoded,
    encoded,
)
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.elementwise import is_floating
from tilewright.relay.frontend.onnx.ops.partials import known_items
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name
from tilewright.support.dtype import DataType


def converted(node: Node, data: RelayExpr, dtype: str) -> RelayExpr:
    """Numbers in another type; true is what is not zero."""
    if node.dtype(data) == dtype:
        return data
    if dtype == "bool":
        return relay.not_equal(data, node.constant(0, data))
    made = relay.cast(data, dtype)
    return known_items(node, made, lambda item: item, data) if not is_floating(node, data) else made


def ordinary(node: Node, data: RelayExpr) -> RelayExpr:
    """Numbers that the compiler can count with, from a tensor that may carry a low-precision type."""
    low_precision = node.low_precision(data)
    return data if low_precision is None else decoded(data, low_precision)


def to_low_precision(
    node: Node, data: RelayExpr, low_precision: LowPrecisionType, saturate: bool = True, rounding: str = "up"
) -> RelayExpr:
    """The carrier of numbers in a low-precision type."""
    given = converted(node, data, "int32" if isinstance(low_precision, LowPrecisionInteger) else "float32")
    return node.graph.mark(encoded(given, low_precision, saturate, rounding), low_precision)


def _cast(node: Node, data: RelayExpr, dtype: str, low_precision: LowPrecisionType | None) -> RelayExpr:
    if node.low_precision(data) is low_precision and node.dtype(data) == dtype:
        return data
    numbers = ordinary(node, data)
    if low_precision is None:
        return converted(node, numbers, dtype)
    return to_low_precision(
        node, numbers, low_precision, bool(node.attr("saturate", 1)), str(node.attr("round_mode", "up"))
    )


@converter("Cast")
def cast(node: Node, data: RelayExpr) -> RelayExpr:
    """To the type that an attribute names."""
    element_type = int(node.attr("to"))
    return _cast(node, data, dtype_name(element_type), LOW_PRECISION_TYPES.get(element_type))


@converter("CastLike")
def cast_like(node: Node, data: RelayExpr, like: RelayExpr) -> RelayExpr:
    """To the type of another tensor."""
    return _cast(node, data, node.dtype(like), node.low_precision(like))


@converter("BitCast")
def bit_cast(node: Node, data: RelayExpr) -> RelayExpr:
    """The bits taken as another type of the same width."""
    element_type = int(node.attr("to"))
    dtype, wanted, given = (
        dtype_name(element_type),
        LOW_PRECISION_TYPES.get(element_type),
        node.low_precision(data),
    )
    from_bits = given.bits if given is not None else _width(node.dtype(data))
    to_bits = wanted.bits if wanted is not None else _width(dtype)
    if from_bits != to_bits:
        raise node.fail(f"elements of {from_bits} bits are not elements of {to_bits} bits")
    if from_bits < 8:
        code = relay.bitwise_and(relay.cast(data, "int32"), node.constant((1 << from_bits) - 1, "int32"))
        if isinstance(wanted, LowPrecisionInteger):
            return to_low_precision(node, code, wanted)
        return node.graph.mark(relay.cast(code, dtype), wanted)
    if node.dtype(data) == "bool" or dtype == "bool":
        return converted(node, data, dtype)
    return node.graph.mark(relay.reinterpret(data, dtype), wanted)


def _width(dtype: str) -> int:
    kind = DataType(dtype)
    return 8 if kind.is_bool else kind.bits
