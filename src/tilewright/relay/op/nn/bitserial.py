"""Bit-serial operators: numbers of a few bits, packed bit by bit into words, and products of such numbers.

The lowest bits of an activation are an unsigned number. A weight's bits represent 0 and 1, or, if the product is
``unipolar``, -1 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.nn.convolution_rules import convolve
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import pad_tuple, per_axis, slid_extents
from tilewright.relay.op.shapes import combine, dims, normal_axis, require_multiple, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


@attributes
class BitPackAttrs(OpAttrs):
    """bitpack: how many bits, along which axis numbers are packed, and where the axis of bits is put."""

    bits: int = 1
    pack_axis: int = 1
    bit_axis: int = 2
    pack_type: str = "uint32"
    name: str = "BitPack"


@attributes
class BinaryConv2DAttrs(OpAttrs):
    """bitserial_conv2d."""

    strides: Any = (1, 1)
    padding: Any = (0, 0, 0, 0)
    channels: Any = None
    kernel_size: Any = (3, 3)
    activation_bits: int = 1
    weight_bits: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    pack_dtype: str = "uint32"
    out_dtype: str = "int16"
    unipolar: bool = True


@attributes
class BinaryDenseAttrs(OpAttrs):
    """bitserial_dense."""

    units: Any = None
    data_bits: int = 1
    weight_bits: int = 1
    pack_dtype: str = "uint32"
    out_dtype: str = "int16"
    unipolar: bool = True


def _width(pack_type: str) -> int:
    return DataType(pack_type).bits


def bitpack_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The packed axis divided by a word's bits, and an axis of bits."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    shape = list(dims(data))
    axis = normal_axis(attrs.pack_axis, len(shape), "pack_axis")
    if not 0 <= attrs.bit_axis <= len(shape):
        raise RelationError(f"bit_axis {attrs.bit_axis} is out of range for {len(shape)} dimensions")
    width = _width(attrs.pack_type)
    _check_words(shape[axis], attrs.pack_type)
    shape[axis] = combine(lambda count: count // width, shape[axis])
    shape.insert(attrs.bit_axis, attrs.bits)
    return TensorType(shape, attrs.pack_type)


def _bitpack_reference(attrs: Any, data: Any) -> Any:
    axis = attrs.pack_axis % data.ndim
    width = _width(attrs.pack_type)
    moved = np.moveaxis(data, axis, -1)
    words = moved.reshape(*moved.shape[:-1], -1, width).astype(np.uint64)
    places = np.arange(width - 1, -1, -1, dtype=np.uint64)
    planes = []
    for bit in range(attrs.bits):
        ones = (words >> np.uint64(bit)) & np.uint64(1)
        packed = np.bitwise_or.reduce(ones << places, axis=-1)
        planes.append(np.moveaxis(packed, -1, axis))
    return np.stack(planes, axis=attrs.bit_axis).astype(numpy_dtype(DataType(attrs.pack_type)))


BITPACK = define(
    "nn.bitpack",
    arguments=("data",),
    attrs=BitPackAttrs,
    relation=bitpack_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.bitpack(inputs[0], attrs.bits, attrs.pack_axis, attrs.bit_axis, attrs.pack_type, attrs.name)
    ],
    reference=_bitpack_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=2,
    description="The lowest bits of integers, each bit's plane packed into words.",
)


def bitpack(
    data: RelayExpr,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = 2,
    pack_type: str = "uint32",
    name: str = "BitPack",
) -> Call:
    """The lowest ``bits`` bits of integers, each bit's plane packed into words along ``pack_axis``; the planes stand
    along a new axis at ``bit_axis``, and the first number of a word has its highest bit."""
    return Call(BITPACK, (data,), BitPackAttrs(bits, pack_axis, bit_axis, pack_type, name))


def _activations(data: Any, bits: int) -> Any:
    return data.astype(np.int64) & ((1 << bits) - 1)


def _unpacked(words: Any, pack_axis: int, bit_axis: int, pack_type: str) -> Any:
    """The numbers of packed planes; ``pack_axis`` is counted without the axis of bits."""
    width = _width(pack_type)
    planes = np.moveaxis(words, bit_axis, 0)
    total: Any = 0
    for bit, plane in enumerate(planes):
        wide = np.moveaxis(plane, pack_axis, -1).astype(np.uint64)
        places = np.arange(width - 1, -1, -1, dtype=np.uint64)
        ones = ((wide[..., None] >> places) & np.uint64(1)).astype(np.int64)
        numbers = ones.reshape(*wide.shape[:-1], -1)
        total = total + (np.moveaxis(numbers, -1, pack_axis) << bit)
    return total


def _weights(numbers: Any, bits: int, unipolar: bool) -> Any:
    """The values of the bits of weights."""
    low = numbers.astype(np.int64) & ((1 << bits) - 1)
    return 2 * low - ((1 << bits) - 1) if unipolar else low


def _check_words(extent: Any, pack_dtype: str) -> None:
    require_multiple(extent, _width(pack_dtype), f"{extent} numbers do not fill whole words of {pack_dtype}")


# Convolution


def bitserial_conv2d_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As a convolution; ``channels`` and ``kernel_size`` tell the weight's extents, which may be packed."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if attrs.channels is None:
        raise RelationError("channels must be given, because a packed weight does not tell them")
    if attrs.data_layout not in ("NCHW", "NHWC"):
        raise RelationError(f"the layout is NCHW or NHWC, not {attrs.data_layout}")
    given = whole_extents(dims(data), attrs.data_layout, "NCHW", "the data")
    _check_words(given[1], attrs.pack_dtype)
    kernel = per_axis(attrs.kernel_size, 2, "kernel_size")
    extents = slid_extents(given[2:], kernel, attrs.strides, attrs.padding, 1)
    shape = laid_out((given[0], attrs.channels, *extents), "NCHW", attrs.data_layout, "the result")
    return TensorType(shape, attrs.out_dtype)


def _bitserial_conv2d_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    compute = {"NCHW": topi.nn.bitserial_conv2d_nchw, "NHWC": topi.nn.bitserial_conv2d_nhwc}[
        attrs.data_layout
    ]
    return [
        compute(
            inputs[0],
            inputs[1],
            attrs.strides,
            attrs.padding,
            attrs.activation_bits,
            attrs.weight_bits,
            attrs.pack_dtype,
            attrs.out_dtype,
            attrs.unipolar,
        )
    ]


def _bitserial_conv2d_reference(attrs: Any, data: Any, weight: Any) -> Any:
    order = "OIHW" if attrs.data_layout == "NCHW" else "HWIO"
    numbers = weight if weight.ndim == 4 else _unpacked(weight, order.index("I"), 4, attrs.pack_dtype)
    kernel = converted_array(_weights(numbers, attrs.weight_bits, attrs.unipolar), order, "OIHW")
    plain = converted_array(_activations(data, attrs.activation_bits), attrs.data_layout, "NCHW")
    made = convolve(plain, kernel, attrs.strides, attrs.padding, 1, 1, attrs.out_dtype)
    return converted_array(made, "NCHW", attrs.data_layout)


def _bitserial_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    data = Layout(attrs.data_layout)
    return Layouts((data, None), (data,), attrs)


BITSERIAL_CONV2D = define(
    "nn.bitserial_conv2d",
    arguments=("data", "weight"),
    attrs=BinaryConv2DAttrs,
    relation=bitserial_conv2d_relation,
    compute=_bitserial_conv2d_compute,
    reference=_bitserial_conv2d_reference,
    layout=_bitserial_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    description="Convolution of numbers of a few bits.",
)


def bitserial_conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    channels: int | None = None,
    kernel_size: Any = (3, 3),
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Call:
    """The convolution of numbers of a few bits, by AND and popcount; the weight may be packed before."""
    attrs = BinaryConv2DAttrs(
        per_axis(strides, 2, "strides"),
        pad_tuple(padding, 2),
        channels,
        per_axis(kernel_size, 2, "kernel_size"),
        activation_bits,
        weight_bits,
        data_layout,
        kernel_layout,
        pack_dtype,
        out_dtype,
        unipolar,
    )
    return Call(BITSERIAL_CONV2D, (data, weight), attrs)


# dense


def bitserial_dense_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """(rows, units); the weight may be packed, (units, bits, words)."""
    data, weight = tensor(types[0], "the data"), tensor(types[1], "the weight")
    if data is None or weight is None:
        return None
    if len(data.shape) != 2 or len(weight.shape) not in (2, 3):
        raise RelationError(
            "data of two dimensions and a weight of two, or of three where packed, are needed"
        )
    _check_words(dims(data)[1], attrs.pack_dtype)
    units = attrs.units if attrs.units is not None else dims(weight)[0]
    return TensorType((dims(data)[0], units), attrs.out_dtype)


def _bitserial_dense_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    bits = (attrs.data_bits, attrs.weight_bits)
    return [
        topi.nn.bitserial_dense(
            inputs[0], inputs[1], *bits, attrs.pack_dtype, attrs.out_dtype, attrs.unipolar
        )
    ]


def _bitserial_dense_reference(attrs: Any, data: Any, weight: Any) -> Any:
    numbers = weight if weight.ndim == 2 else _unpacked(weight, 1, 1, attrs.pack_dtype)
    product = _activations(data, attrs.data_bits) @ _weights(numbers, attrs.weight_bits, attrs.unipolar).T
    return product.astype(numpy_dtype(DataType(attrs.out_dtype)))


BITSERIAL_DENSE = define(
    "nn.bitserial_dense",
    arguments=("data", "weight"),
    attrs=BinaryDenseAttrs,
    relation=bitserial_dense_relation,
    compute=_bitserial_dense_compute,
    reference=_bitserial_dense_reference,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="The product of matrices of numbers of a few bits.",
)


def bitserial_dense(
    data: RelayExpr,
    weight: RelayExpr,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Call:
    """``data @ weight.T`` of numbers of a few bits, by AND and popcount; the weight may be packed before."""
    attrs = BinaryDenseAttrs(units, data_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    return Call(BITSERIAL_DENSE, (data, weight), attrs)
