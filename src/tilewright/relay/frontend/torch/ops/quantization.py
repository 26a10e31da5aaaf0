"""Quantisation in the graphs of PyTorch's exporter: numbers are rounded to a grid, and back.

Where scales and zero points are known, as in models that are quantised with ``pt2e`` or trained for it, the integers
are those of the dialect ``relay.qnn``, and the compiler multiplies them. Where the program finds scales itself (dynamic
quantisation), dequantised tensors still say what their integers stand for.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, const
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import reshaped, size_of, sizes_of
from tilewright.relay.frontend.torch.dtypes import is_floating
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.ops.matrices import flattened_rows
from tilewright.relay.frontend.torch.registry import converter

STORED: Final = ("int8", "uint8")
"""Element types that numbers are quantised to in the quantised dialect."""
DEQUANTIZED: Final = (*STORED, "int16", "int32")
"""Those that are dequantised there."""


def known_parameters(
    node: TorchNode, scale: Operand, zero_point: Operand | None
) -> tuple[Constant, Constant] | None:
    """A scale and a zero point as the quantised dialect takes them, scalars or vectors; None where only the program
    knows them, or where the dialect cannot say them."""
    found = _value(node, scale), np.asarray(0) if zero_point is None else _value(node, zero_point)
    if found[0] is None or found[1] is None or found[1].dtype.kind not in "iu":
        return None
    scales, zeros = found[0].astype(np.float32), found[1].astype(np.int32)
    if not (np.isfinite(scales) & (scales > 0)).all() or not np.array_equal(zeros, found[1]):
        return None
    made = [const(one.reshape(() if one.size == 1 else -1)) for one in (scales, zeros)]
    return made[0], made[1]


def _value(node: TorchNode, given: Operand) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    return node.value(given) if isinstance(given, RelayExpr) else np.asarray(given)


def _quantized(
    node: TorchNode,
    data: Expr,
    parameters: tuple[Constant, Constant],
    axis: int,
    limits: tuple[int, int],
    dtype: str,
) -> Expr:
    """Integers of the quantised dialect, between limits that may be narrower than those of their type."""
    made = relay.qnn.op.quantize(_wide(node, data), *parameters, axis, dtype, "TOEVEN")
    ends = np.iinfo(dtype)
    return made if limits == (ends.min, ends.max) else relay.clip(made, *limits)


def _on_grid(node: TorchNode, data: Expr, scale: Expr, zero: Expr, low: int, high: int) -> Expr:
    """The whole numbers that stand for elements, as floats."""
    steps = relay.nearbyint(relay.multiply(data, relay.divide(node.constant(1.0, data), scale)))
    return relay.clip(relay.add(steps, zero), float(low), float(high))


def _in_steps(node: TorchNode, data: Expr, scale: Expr, zero: Expr, low: int, high: int) -> Expr:
    """The same where the zero point is added before rounding, which is another integer at some halves."""
    steps = relay.multiply(data, relay.divide(node.constant(1.0, data), scale))
    return relay.clip(relay.nearbyint(relay.add(steps, zero)), float(low), float(high))


def _along(node: TorchNode, given: Expr, data: Expr, axis: int, dtype: str) -> Expr:
    """A vector of scales or zero points along an axis of a tensor."""
    rank = node.rank(data)
    place = node.axis_of(axis, rank)
    return relay.reshape(node.cast(given, dtype), [-1 if one == place else 1 for one in range(rank)])


def _one(node: TorchNode, given: Operand, dtype: str) -> Expr:
    made = node.cast(given, dtype)
    return relay.reshape(made, ()) if node.rank(made) else made


def _wide(node: TorchNode, data: Expr) -> Expr:
    """Data in the type that PyTorch quantises from."""
    return node.cast(data, "float32")


def _dequantized(data: Expr, scale: Expr, zero: Expr, dtype: str) -> Expr:
    """``(data - zero) * scale`` in floats; both broadcast to the data."""
    return relay.multiply(relay.subtract(relay.cast(data, dtype), zero), scale)


# One scale for all elements


@converter("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(
    node: TorchNode,
    input: Expr,
    scale: Operand,
    zero_point: Operand,
    quant_min: Operand,
    quant_max: Operand,
    dtype: str,
) -> Expr:
    """One scale for all elements."""
    low, high = (int(node.number_of(one, "a limit of the integers")) for one in (quant_min, quant_max))
    known = known_parameters(node, scale, zero_point)
    if known is not None and dtype in STORED:
        return _quantized(node, input, known, -1, (low, high), dtype)
    step, zero = _one(node, scale, "float32"), _one(node, zero_point, "float32")
    return relay.cast(_on_grid(node, _wide(node, input), step, zero, low, high), dtype)


@converter("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(
    node: TorchNode, input: Expr, scale: Operand, zero_point: Operand, quant_min: Operand, quant_max: Operand,
    dtype: str, out_dtype: str | None = None,
) -> Expr:  # fmt: skip
    """Numbers back from one scale."""
    kind = out_dtype or "float32"
    if kind != "float32" or dtype not in DEQUANTIZED:
        return _dequantized(input, _one(node, scale, kind), _one(node, zero_point, kind), kind)
    known = known_parameters(node, scale, zero_point)
    if known is None:
        return relay.qnn.op.dequantize(input, _one(node, scale, kind), _one(node, zero_point, "int32"))
    return relay.qnn.op.dequantize(input, *known)


@converter("aten::fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor(
    node: TorchNode, input: Expr, scale: Operand, zero_point: Operand, quant_min: int, quant_max: int
) -> Expr:
    """Numbers rounded to what one scale can say."""
    known, stored = known_parameters(node, scale, zero_point), _stored(quant_min, quant_max)
    kind = node.dtype(input)
    if known is not None and stored is not None and kind == "float32":
        integers = _quantized(node, input, known, -1, (quant_min, quant_max), stored)
        return relay.qnn.op.dequantize(integers, *known)
    step, zero = _one(node, scale, kind), _one(node, zero_point, kind)
    found = _on_grid(node, input, step, zero, quant_min, quant_max)
    return relay.multiply(relay.subtract(found, zero), step)


def _stored(low: int, high: int) -> str | None:
    """The type of 8 bits that holds integers between limits."""
    for dtype in STORED:
        ends = np.iinfo(dtype)
        if ends.min <= low and high <= ends.max:
            return dtype
    return None


# A scale for each place of an axis


@converter("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, axis: int, quant_min: int, quant_max: int,
    dtype: str,
) -> Expr:  # fmt: skip
    """A scale for each place of an axis."""
    known = known_parameters(node, scales, zero_points)
    if known is not None and dtype in STORED:
        place = node.axis_of(axis, node.rank(input))
        return _quantized(node, input, known, place, (quant_min, quant_max), dtype)
    data = _wide(node, input)
    scale, zero = (_along(node, one, data, axis, "float32") for one in (scales, zero_points))
    return relay.cast(_on_grid(node, data, scale, zero, quant_min, quant_max), dtype)


@converter("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr | None, axis: int, quant_min: int,
    quant_max: int, dtype: str, out_dtype: str | None = None,
) -> Expr:  # fmt: skip
    """Numbers back from a scale for each place of an axis."""
    known = known_parameters(node, scales, zero_points)
    if known is not None and dtype in DEQUANTIZED and (out_dtype or "float32") == "float32":
        return relay.qnn.op.dequantize(input, *known, axis=node.axis_of(axis, node.rank(input)))
    scale = _along(node, scales, input, axis, "float32")
    data: Expr = relay.cast(input, "float32")
    if zero_points is not None:
        data = relay.subtract(data, _along(node, zero_points, input, axis, "float32"))
    made = relay.multiply(data, scale)
    return node.cast(made, out_dtype or "float32")


@converter("aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel(
    node: TorchNode, input: Expr, scale: Expr, zero_point: Expr, axis: int, quant_min: int, quant_max: int
) -> Expr:
    """Numbers rounded to what a scale for each place of an axis can say."""
    known, stored = known_parameters(node, scale, zero_point), _stored(quant_min, quant_max)
    kind = node.dtype(input)
    if known is not None and stored is not None and kind == "float32":
        place = node.axis_of(axis, node.rank(input))
        integers = _quantized(node, input, known, place, (quant_min, quant_max), stored)
        return relay.qnn.op.dequantize(integers, *known, axis=place)
    step, zero = _along(node, scale, input, axis, kind), _along(node, zero_point, input, axis, kind)
    found = _on_grid(node, input, step, zero, quant_min, quant_max)
    return relay.multiply(relay.subtract(found, zero), step)


@converter("quantized_decomposed::fake_quant_per_channel")
def fake_quant_per_channel(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, axis: int, quant_min: int, quant_max: int
) -> Expr:
    """The same under another name."""
    return fake_quantize_per_channel(node, input, scales, zero_points, axis, quant_min, quant_max)


# A scale for each row


@converter("quantized_decomposed::quantize_per_token")
def quantize_per_token(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, quant_min: int, quant_max: int, dtype: str
) -> Expr:
    """A scale for each row."""
    scale, zero = (node.cast(one, "float32") for one in (scales, zero_points))
    return relay.cast(_in_steps(node, _wide(node, input), scale, zero, quant_min, quant_max), dtype)


@converter("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, quant_min: int, quant_max: int, dtype: str,
    output_dtype: str = "float32",
) -> Expr:  # fmt: skip
    """Numbers back from a scale for each row."""
    if output_dtype != "float32" or dtype not in DEQUANTIZED:
        scale, zero = (node.cast(one, "float32") for one in (scales, zero_points))
        return node.cast(_dequantized(input, scale, zero, "float32"), output_dtype)
    scale, zero = (
        relay.reshape(node.cast(one, kind), [-1])
        for one, kind in ((scales, "float32"), (zero_points, "int32"))
    )
    rows = relay.qnn.op.dequantize(flattened_rows(node, input), scale, zero, axis=0)
    return rows if node.rank(input) == 2 else reshaped(node, rows, sizes_of(node, input))


# A scale for each group of adjacent places of a row


def _in_groups(node: TorchNode, data: Expr, size: int, scales: Expr) -> Expr:
    depth = size_of(node, data, -1)
    if isinstance(depth, int) and size > depth and node.shape(scales)[-1:] == (1,):
        size = depth
    return relay.reshape(data, [-1, size])


@converter("quantized_decomposed::quantize_per_channel_group")
def quantize_per_channel_group(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr, quant_min: int, quant_max: int, dtype: str,
    group_size: int = 128,
) -> Expr:  # fmt: skip
    """A scale for each group of a row."""
    kind = node.dtype(input)
    scale, zero = (relay.reshape(node.cast(one, kind), [-1, 1]) for one in (scales, zero_points))
    found = _in_steps(node, _in_groups(node, input, group_size, scales), scale, zero, quant_min, quant_max)
    return reshaped(node, relay.cast(found, dtype), sizes_of(node, input))


@converter("quantized_decomposed::dequantize_per_channel_group")
def dequantize_per_channel_group(
    node: TorchNode, input: Expr, scales: Expr, zero_points: Expr | None, quant_min: int, quant_max: int,
    dtype: str, group_size: int = 128, output_dtype: str = "float32",
) -> Expr:  # fmt: skip
    """Numbers back from a scale for each group of a row."""
    data = _in_groups(node, input, group_size, scales)
    if zero_points is not None:
        # Whole numbers until scales come: that is how the compiler finds weights that it keeps packed.
        kind = "float32" if is_floating(node.dtype(zero_points)) else "int32"
        data = relay.subtract(relay.cast(data, kind), relay.reshape(node.cast(zero_points, kind), [-1, 1]))
    made = relay.multiply(node.cast(data, "float32"), relay.reshape(node.cast(scales, "float32"), [-1, 1]))
    return node.cast(reshaped(node, made, sizes_of(node, input)), output_dtype)


# Scales that the data decide


def _range(node: TorchNode, data: Expr, by_row: bool = False) -> tuple[Expr, Expr]:
    """The least and the greatest element, and zero, of all or of each row."""
    zero, axis = node.constant(0.0, data), -1 if by_row else None
    least, most = (one(data, axis=axis, keepdims=by_row) for one in (relay.min, relay.max))
    return relay.minimum(least, zero), relay.maximum(most, zero)


def _as_parameters(scale: Expr, zero_point: Expr, shape: list[int] | None = None) -> list[Expr]:
    made: list[Expr] = [relay.cast(scale, "float64"), relay.cast(zero_point, "int64")]
    return made if shape is None else [relay.reshape(one, shape) for one in made]


@converter("quantized_decomposed::choose_qparams")
def choose_qparams(
    node: TorchNode, input: Expr, quant_min: int, quant_max: int, eps: float, dtype: str
) -> list[Expr]:
    """The scale and the zero point at which the elements fill the grid."""
    data = _wide(node, input)
    low, high = _range(node, data)
    span = node.constant(float(quant_max - quant_min), data)
    scale = relay.maximum(relay.divide(relay.subtract(high, low), span), node.constant(eps, data))
    point = relay.subtract(node.constant(float(quant_min), data), relay.nearbyint(relay.divide(low, scale)))
    return _as_parameters(scale, relay.clip(point, float(quant_min), float(quant_max)), [1])


@converter("quantized_decomposed::choose_qparams_symmetric")
def choose_qparams_symmetric(
    node: TorchNode, input: Expr, quant_min: int, quant_max: int, eps: float, dtype: str
) -> list[Expr]:
    """The scale at which the largest element is at an end of the grid; the zero point is in its middle."""
    data = _wide(node, input)
    low, high = _range(node, data)
    half = node.constant((quant_max - quant_min) / 2, data)
    scale = relay.divide(relay.maximum(relay.negative(low), high), half)
    scale = relay.maximum(scale, node.constant(eps, data))
    return _as_parameters(scale, node.constant(128.0 if dtype == "uint8" else 0.0, data), [1])


_LEAST_SCALE: Final = float(np.finfo(np.float32).eps)
_LEAST_SIZE: Final = 1e-5
_ENDS: Final = (-128.0, 127.0)


@converter("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_per_token(node: TorchNode, input: Expr, dtype: str) -> list[Expr]:
    """The scale of each row at which its largest element is the largest integer."""
    if dtype != "int8":
        raise node.fail(f"rows are quantised to int8, not {dtype}")
    data = _wide(node, input)
    largest = relay.max(relay.abs(data), axis=-1, keepdims=True)
    largest = relay.maximum(largest, node.constant(_LEAST_SIZE, data))
    scale = relay.divide(largest, node.constant(_ENDS[1], data))
    return _as_parameters(scale, relay.zeros_like(scale))


@converter(
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
)
def choose_qparams_per_token_asymmetric(node: TorchNode, input: Expr, dtype: str) -> list[Expr]:
    """The scale and the zero point of each row at which its elements fill the integers of 8 bits. The zero point is
    taken from the end of the range at which rounding costs less."""
    data = _wide(node, input)
    low, high = _range(node, data, by_row=True)
    least, most = (node.constant(one, data) for one in _ENDS)
    scale = relay.divide(relay.subtract(high, low), relay.subtract(most, least))
    scale = relay.maximum(scale, node.constant(_LEAST_SCALE, data))
    below, above = relay.divide(low, scale), relay.divide(high, scale)
    errors = relay.add(relay.add(least, below), relay.add(most, above))
    point = relay.where(
        relay.greater(errors, node.constant(0.0, data)),
        relay.subtract(least, below),
        relay.subtract(most, above),
    )
    return _as_parameters(scale, relay.nearbyint(relay.clip(point, *_ENDS)))


@converter("quantized_decomposed::convert_element_type")
def convert_element_type(node: TorchNode, input: Expr, dtype: str) -> Expr:
    """Another element type, which PyTorch's own compiler is not to fuse."""
    return node.cast(input, dtype)
