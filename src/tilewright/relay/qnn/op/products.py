"""Convolutions and matrix products of quantised tensors, with sums of 32 bits.

With zero points ``a`` and ``b``, a sum of products ``(x - a) * (y - b)`` is

    sum(x * y) - b * sum(x) - a * sum(y) + count * a * b

The first term is the product of the integers as they are stored. The third follows from the weights, so that it is
computed when the program is compiled; the second vanishes where weights are quantised symmetrically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, const
from tilewright.relay.op.attributes import attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, Relation, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.convolution import converts_layout, spatial_attributes
from tilewright.relay.op.nn.convolution_attributes import Conv2DAttrs, Conv2DTransposeAttrs
from tilewright.relay.op.nn.dense import BatchMatmulAttrs, DenseAttrs
from tilewright.relay.op.shapes import dims, known, tensor
from tilewright.relay.qnn.op.parameters import (
    Array,
    check_scale,
    check_zero_point,
    constants,
    is_zero,
    spread,
    spread_array,
    value_of,
    wide,
)
from tilewright.relay.qnn.op.rules import register_qnn_canonicalize
from tilewright.tir.data_layout import Layout

_ARGUMENTS = ("data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale")
_STORED = ("int8", "uint8", "int16")


@attributes
class QnnConv2DAttrs(Conv2DAttrs):
    """qnn.conv2d: those of conv2d."""

    out_dtype: str = "int32"


@attributes
class QnnConv2DTransposeAttrs(Conv2DTransposeAttrs):
    """qnn.conv2d_transpose: those of conv2d_transpose."""

    out_dtype: str = "int32"


@attributes
class QnnDenseAttrs(DenseAttrs):
    """qnn.dense: those of dense."""

    out_dtype: str = "int32"


@attributes
class QnnBatchMatmulAttrs(BatchMatmulAttrs):
    """qnn.batch_matmul: those of batch_matmul."""

    out_dtype: str = "int32"


def _plain(name: str, attrs: Any) -> Any:
    """The attributes of the ordinary operator."""
    made = Op.get(name).get_attr("AttrsClass")
    return made(**dict(attrs.items()))


def _relation(name: str, channel_axis: Callable[[Any], int]) -> Relation:
    """That of the ordinary operator, with checks of the parameters; weights may have one scale and zero point per
    output channel, which lie along ``channel_axis`` of the weights."""

    def relation(types: Sequence[Type], attrs: Any) -> Type | None:
        data, weight = tensor(types[0], "the data"), tensor(types[1], "the weights")
        if data is None or weight is None:
            return None
        for what, kind in (("data", data), ("weights", weight)):
            if str(kind.dtype) not in _STORED:
                raise RelationError(f"the {what} are {', '.join(_STORED)}, not {kind.dtype}")
        if attrs.out_dtype not in ("int32", "int16"):
            raise RelationError(f"out_dtype is int32, not {attrs.out_dtype}")
        channels = dims(weight)[channel_axis(attrs)]
        checked = [
            check_zero_point(types[2], "the data's zero point"),
            check_zero_point(types[3], "the weights' zero point", channels),
            check_scale(types[4], "the data's scale"),
            check_scale(types[5], "the weights' scale", channels),
        ]
        if not all(checked):
            return None
        ordinary = Op.get(name).get_attr("TypeRelation")[1]
        made: Type | None = ordinary([data, weight], attrs)
        return made

    relation.__name__ = f"qnn_{name.replace('.', '_')}_relation"
    return relation


def _reference(name: str, channel_axis: Callable[[Any], int]) -> Callable[..., Array]:
    """That of the ordinary operator, on shifted integers of 64 bits."""

    def reference(
        attrs: Any, data: Array, weight: Array, of_data: Array, of_weight: Array, *scales: Array
    ) -> Array:
        shifted = data.astype(np.int64) - of_data.astype(np.int64).reshape(())
        zero = spread_array(of_weight.astype(np.int64), weight.ndim, channel_axis(attrs))
        ordinary = _plain(name, attrs).replace(out_dtype="int64")
        made = Op.get(name).get_attr("FReference")(ordinary, shifted, weight.astype(np.int64) - zero)
        return np.asarray(made).astype(attrs.out_dtype)

    return reference


def _shifted_product(name: str, attrs: Any, arguments: Any, types: Any, axis: int) -> RelayExpr:
    """The product of shifted integers of 16 bits: where there is no better form."""
    data, weight, of_data, of_weight = arguments[:4]

    def shifted(expr: RelayExpr, zero: RelayExpr, kind: Type, rank: int, along: int) -> RelayExpr:
        narrow = wide(expr, "int16")
        return (
            narrow
            if is_zero(zero)
            else call("subtract", narrow, wide(spread(zero, kind, rank, along), "int16"))
        )

    return Call(
        Op.get(name),
        (
            shifted(data, of_data, types[2], len(types[0].shape), 0),
            shifted(weight, of_weight, types[3], len(types[1].shape), axis),
        ),
        _plain(name, attrs),
    )


def _joined(product: RelayExpr, *terms: RelayExpr | None) -> RelayExpr:
    """The product minus terms, each as a sum with its negative: constants next to one another, such as a bias, become
    one."""
    for term in terms:
        product = product if term is None else call("add", product, call("negative", term))
    return product


def _both_zero_points(
    of_data: RelayExpr, of_weight: RelayExpr, weight_zero: RelayExpr, count: int
) -> RelayExpr | None:
    """``-count * a * b``; ``weight_zero`` is the weights' zero point as it meets the result."""
    if is_zero(of_data) or is_zero(of_weight):
        return None
    return call("multiply", call("multiply", wide(of_data), const(-count, "int32")), weight_zero)


# dense and batch_matmul


def _dense_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    data, weight, of_data, of_weight = arguments[:4]
    depth = dims(types[0])[-1]
    if not known(depth):
        return _shifted_product("nn.dense", attrs, arguments, types, 0)
    rank = len(types[0].shape)
    zero = wide(spread(of_weight, types[3], rank, rank - 1))
    of_data = spread(of_data, types[2], 0, 0)
    sums = None
    if not is_zero(of_weight):
        sums = call("multiply", call("sum", wide(data), axis=(rank - 1,), keepdims=True), zero)
    of_weights = None
    if not is_zero(of_data):
        of_weights = call("multiply", call("sum", wide(weight), axis=(1,)), wide(of_data))
    product = Call(Op.get("nn.dense"), (data, weight), _plain("nn.dense", attrs))
    return _joined(
        product, sums, of_weights, _both_zero_points(of_data, of_weight, zero, constants((depth,))[0])
    )


def _batch_matmul_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    data, weight, of_data, of_weight = arguments[:4]
    depth = dims(types[0])[1 if attrs.transpose_a else 2]
    if not known(depth):
        return _shifted_product("nn.batch_matmul", attrs, arguments, types, 0)
    of_data, of_weight = spread(of_data, types[2], 0, 0), spread(of_weight, types[3], 0, 0)
    sums = None
    if not is_zero(of_weight):
        rows = call("sum", wide(data), axis=(1 if attrs.transpose_a else 2,))
        sums = call("multiply", call("expand_dims", rows, axis=2), wide(of_weight))
    of_weights = None
    if not is_zero(of_data):
        columns = call("sum", wide(weight), axis=(2 if attrs.transpose_b else 1,))
        of_weights = call("multiply", call("expand_dims", columns, axis=1), wide(of_data))
    product = Call(Op.get("nn.batch_matmul"), (data, weight), _plain("nn.batch_matmul", attrs))
    both = _both_zero_points(of_data, of_weight, wide(of_weight), constants((depth,))[0])
    return _joined(product, sums, of_weights, both)


# conv2d


def _padding(attrs: Any) -> tuple[int, int, int, int]:
    """Above, left, below, right."""
    given = attrs.padding if isinstance(attrs.padding, tuple) else (attrs.padding,)
    if len(given) == 1:
        return (given[0],) * 4
    return (given[0], given[1], given[0], given[1]) if len(given) == 2 else given


def _conv2d_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    data, weight, of_data, of_weight = arguments[:4]
    layout, kernel = attrs.data_layout, attrs.kernel_layout
    output = attrs.out_layout or layout
    channel_axis = kernel.find("O")
    extents = dims(types[1])
    plain = len(layout) == 4 and len(kernel) == 4 and len(output) == 4
    constant_zero = value_of(of_data)
    if (
        not plain
        or not known(*extents)
        or constant_zero is None
        or (attrs.groups != 1 and not is_zero(of_weight))
    ):
        return _padded_and_shifted(attrs, arguments, types)
    padded = _padded(data, int(constant_zero.reshape(-1)[0]), attrs)
    ordinary = _plain("nn.conv2d", attrs)
    if not is_zero(of_data):
        ordinary = ordinary.replace(padding=(0, 0))
    zero = wide(spread(of_weight, types[3], 4, output.find("C")))
    of_data = spread(of_data, types[2], 0, 0)
    sizes = constants(extents)
    count = prod(sizes) // sizes[channel_axis]
    sums = None
    if not is_zero(of_weight):
        sums = call("multiply", _window_sums(padded, ordinary, types), zero)
    of_weights = None
    if not is_zero(of_data):
        others = tuple(place for place in range(4) if place != channel_axis)
        lying = [1, 1, 1, 1]
        lying[output.find("C")] = -1
        total = call("reshape", call("sum", wide(weight), axis=others), newshape=tuple(lying))
        of_weights = call("multiply", total, wide(of_data))
    product = Call(Op.get("nn.conv2d"), (padded, weight), ordinary)
    return _joined(product, sums, of_weights, _both_zero_points(of_data, of_weight, zero, count))


def _padded(data: RelayExpr, zero: int, attrs: Any) -> RelayExpr:
    """The data with a border of its zero point, which stands for zero."""
    above, left, below, right = _padding(attrs)
    if zero == 0 or not any((above, left, below, right)):
        return data
    width = [(0, 0)] * 4
    width[attrs.data_layout.find("H")] = (above, below)
    width[attrs.data_layout.find("W")] = (left, right)
    return call("nn.pad", data, const(float(zero), "float32"), pad_width=tuple(width), pad_mode="constant")


def _window_sums(data: RelayExpr, ordinary: Any, types: Any) -> RelayExpr:
    """The sum of the data in each window: a convolution of the sum over channels with ones."""
    layout, kernel = ordinary.data_layout, ordinary.kernel_layout
    sizes = constants(dims(types[1]))
    height, width = sizes[kernel.find("H")], sizes[kernel.find("W")]
    channels = call("sum", wide(data), axis=(layout.find("C"),), keepdims=True)
    shape = [1, 1, 1, 1]
    shape[kernel.find("H")], shape[kernel.find("W")] = height, width
    ones = const(np.ones(shape, np.int32))
    attrs = ordinary.replace(channels=1, kernel_size=(height, width), groups=1, out_dtype="int32")
    return Call(Op.get("nn.conv2d"), (channels, ones), attrs)


def _padded_and_shifted(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    """Shifted data are padded with zeros, as the ordinary convolution does it."""
    return _shifted_product("nn.conv2d", attrs, arguments, types, attrs.kernel_layout.find("O"))


def _conv2d_transpose_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    return _shifted_product("nn.conv2d_transpose", attrs, arguments, types, attrs.kernel_layout.find("O"))


def _convolution_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Those that the attributes say; scales and zero points have none."""
    inputs = (Layout(attrs.data_layout), Layout(attrs.kernel_layout), *((None,) * (len(types) - 2)))
    return Layouts(inputs, (Layout(attrs.out_layout or attrs.data_layout),), attrs)


def _define(
    name: str,
    attrs: type,
    channel_axis: Callable[[Any], int],
    rule: Any,
    description: str,
    layout: Any = None,
) -> Op:
    ordinary = f"nn.{name}"
    made = define(
        f"qnn.{name}",
        arguments=_ARGUMENTS,
        attrs=attrs,
        relation=_relation(ordinary, channel_axis),
        reference=_reference(ordinary, channel_axis),
        layout=layout,
        kind=OpPattern.OPAQUE,
        level=11,
        description=description,
    )
    register_qnn_canonicalize(f"qnn.{name}", rule)
    return made


_dense = _define("dense", QnnDenseAttrs, lambda attrs: 0, _dense_rule, "dense of quantised tensors.")
_batch_matmul = _define(
    "batch_matmul",
    QnnBatchMatmulAttrs,
    lambda attrs: 0,
    _batch_matmul_rule,
    "batch_matmul of quantised tensors.",
)
_conv2d = _define(
    "conv2d",
    QnnConv2DAttrs,
    lambda attrs: attrs.kernel_layout.find("O"),
    _conv2d_rule,
    "conv2d of quantised tensors.",
    _convolution_layouts,
)
converts_layout(_conv2d, weight=1)
_conv2d_transpose = _define(
    "conv2d_transpose",
    QnnConv2DTransposeAttrs,
    lambda attrs: attrs.kernel_layout.find("O"),
    _conv2d_transpose_rule,
    "conv2d_transpose of quantised tensors.",
    _convolution_layouts,
)
converts_layout(_conv2d_transpose, transposed_weight=True, weight=1)


def dense(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    units: int | None,
    out_dtype: str = "int32",
) -> Call:
    """The matrix product of quantised data (rows, features) and weights (units, features), as sums of 32 bits whose
    scale is ``input_scale * kernel_scale``."""
    arguments = (data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return Call(_dense, arguments, QnnDenseAttrs(units=units, out_dtype=out_dtype))


def batch_matmul(
    x: RelayExpr,
    y: RelayExpr,
    x_zero_point: RelayExpr,
    y_zero_point: RelayExpr,
    x_scale: RelayExpr,
    y_scale: RelayExpr,
    out_dtype: str = "int32",
) -> Call:
    """The matrix products of quantised (batch, rows, features) and (batch, columns, features)."""
    arguments = (x, y, x_zero_point, y_zero_point, x_scale, y_scale)
    return Call(_batch_matmul, arguments, QnnBatchMatmulAttrs(out_dtype=out_dtype))


def conv2d(
    data: RelayExpr,
    kernel: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    kernel_size: Any,
    channels: Any,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Call:
    """The convolution of quantised data, as sums of 32 bits whose scale is ``input_scale * kernel_scale``. The border
    is the data's zero point. The weights may have a scale and a zero point per output channel."""
    attrs = QnnConv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    arguments = (data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return Call(_conv2d, arguments, attrs)


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: Any = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Any = (0, 0),
    out_dtype: str = "int32",
) -> Call:
    """The transposed convolution of quantised data, as sums of 32 bits whose scale is
    ``input_scale * kernel_scale``."""
    attrs = QnnConv2DTransposeAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        output_padding=output_padding,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    arguments = (data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return Call(_conv2d_transpose, arguments, attrs)
