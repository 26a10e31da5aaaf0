"""SinkDequantize: computes on integers what stands between dequantised tensors and where they are quantised again.

A model with explicit quantisation (ONNX's QDQ form) dequantises before each operator and quantises after it. Here
``qnn.dequantize`` moves below operators that give the same on integers: products and convolutions, whose int32 sums
have the product of the scales, and operators that only move elements. Where it meets ``qnn.quantize``, both become one
``qnn.requantize``, or nothing. What stays between the two, such as a sum of tensors with different scales, is
elementwise arithmetic in registers. Unlike ``FakeQuantizationToInteger``, which brings sums and averages to fixed-point
numbers as well, it adds no rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.windows import pad_sides
from tilewright.relay.qnn.integers.moving import MOVING
from tilewright.relay.qnn.op.parameters import is_same, limits, spread, spread_array, value_of
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    Rule,
    is_call,
    rewritten,
    shape_of,
    tensor_of,
)

NARROW: Final = ("int8", "uint8")
ZERO: Final = const(0, "int32")
ONE: Final = const(1.0, "float32")
CLOSE: Final = 1e-6
"""The relative difference of a bias's scale from that of the sums that it is added to, by rounding of the product."""


@dataclass(frozen=True)
class Integers:
    """Integers, and what they stand for: constants, scalars or vectors along ``axis``."""

    data: RelayExpr
    scale: Constant
    zero: Constant
    axis: int

    @property
    def dtype(self) -> str:
        """The type of the integers."""
        return str(tensor_of(self.data).dtype)

    @property
    def is_scalar(self) -> bool:
        """True for one scale and one zero point."""
        return self.scale.data.numpy().size == 1 and self.zero.data.numpy().size == 1

    def same(self, other: Integers) -> bool:
        """True if equal integers stand for equal numbers, by one scale."""
        scalars = self.is_scalar and other.is_scalar and self.dtype == other.dtype
        return scalars and is_same(self.scale, other.scale) and is_same(self.zero, other.zero)

    def real(self, data: RelayExpr | None = None, axis: int | None = None) -> RelayExpr:
        """The numbers that other integers of this kind stand for."""
        return call(
            "qnn.dequantize",
            self.data if data is None else data,
            self.scale,
            self.zero,
            axis=self.axis if axis is None else axis,
        )


def integers_of(expr: RelayExpr) -> Integers | None:
    """What ``qnn.dequantize`` with constant parameters is called on; None for anything else."""
    if not isinstance(expr, Call) or not is_call(expr, "qnn.dequantize"):
        return None
    data, scale, zero = expr.args
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    attrs: Any = expr.attrs
    rank = len(tensor_of(data).shape)
    return Integers(data, scale, zero, attrs.axis % rank if rank else -1)


# Products


def _product(name: str, expr: Call, weight_axis: int, axis: int) -> RelayExpr | None:
    """The operator of the quantised dialect; scales of weights lie along ``weight_axis``, in sums along ``axis``."""
    data, weight = (integers_of(argument) for argument in expr.args)
    if data is None or weight is None or not data.is_scalar:
        return None
    if data.dtype not in NARROW or weight.dtype not in NARROW:
        return None
    if not weight.is_scalar and (weight.axis != weight_axis or weight_axis < 0):
        return None
    made = Op.get(name).get_attr("AttrsClass")
    given: Any = expr.attrs
    known = {key: value for key, value in given.items() if key in made.__dataclass_fields__}
    attrs = made(**{**known, "out_dtype": "int32"})
    parameters = (data.zero, weight.zero, data.scale, weight.scale)
    return _sums(Call(Op.get(name), (data.data, weight.data, *parameters), attrs), data, weight, axis)


def _sums(product: Call, data: Integers, weight: Integers, axis: int) -> RelayExpr:
    scale = np.float32(data.scale.data.numpy().reshape(())) * weight.scale.data.numpy()
    scale = scale.reshape(()) if scale.size == 1 else scale.reshape(-1)
    return call("qnn.dequantize", product, const(scale.astype(np.float32)), ZERO, axis=axis)


def _convolution(name: str) -> Rule:
    def rule(old: Call, new: Call) -> RelayExpr | None:
        attrs: Any = new.attrs
        layout = attrs.out_layout or attrs.data_layout
        return _product(name, new, attrs.kernel_layout.find("O"), layout.find("C"))

    return rule


def _convolution_transposed(old: Call, new: Call) -> RelayExpr | None:
    """Where the windows of the result do not overlap, an ordinary convolution with an output channel for each of its
    pixels, which are then put in their places. The channels of a pixel are adjacent, as blocks need them."""
    data, weight = (integers_of(argument) for argument in new.args)
    attrs: Any = new.attrs
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "NCHW")
    fits = layouts == ("NCHW", "IOHW", "NCHW") and attrs.groups == 1
    if data is None or weight is None or not fits or not _is_apart(attrs, shape_of(weight.data)):
        return _convolution("qnn.conv2d_transpose")(old, new)
    inputs, outputs, size, _ = shape_of(weight.data)
    assert isinstance(outputs, int) and isinstance(size, int)

    def spread(value: Constant) -> Constant:
        numbers = value.data.numpy()
        return value if numbers.size == 1 else const(np.tile(numbers, size * size))

    turned = call("transpose", weight.data, axes=(2, 3, 1, 0))
    turned = call("reshape", turned, newshape=(outputs * size * size, inputs, 1, 1))
    plain = call(
        "nn.conv2d",
        data.real(),
        Integers(turned, spread(weight.scale), spread(weight.zero), 0).real(),
        channels=outputs * size * size,
        kernel_size=(1, 1),
    )
    made = None
    if weight.is_scalar or weight.axis == 1:
        made = _product("qnn.conv2d", plain, 0, 1)
    if made is None:
        return None
    return call("nn.depth_to_space", made, block_size=size, mode="DCR")


def _is_apart(attrs: Any, kernel: Any) -> bool:
    """True if windows are square and as far apart as they are large."""
    sizes = {*kernel[2:], *attrs.strides}
    border = {*(amount for side in pad_sides(attrs.padding, 2) for amount in side), *attrs.output_padding}
    return len(sizes) == 1 and border == {0} and set(attrs.dilation) == {1}


def _before_pixels_move(rule: Rule) -> Rule:
    """A rule that is applied before ``nn.depth_to_space`` moves pixels: what follows a convolution stays next to it."""

    def applied(old: Call, new: Call) -> RelayExpr | None:
        moved = new.args[0]
        if not isinstance(moved, Call) or not is_call(moved, "nn.depth_to_space"):
            return rule(old, new)
        attrs: Any = moved.attrs
        others = [_spread(one, attrs.block_size**2, attrs.mode == "CRD") for one in new.args[1:]]
        if attrs.mode not in ("CRD", "DCR") or attrs.layout != "NCHW" or None in others:
            return None
        inner = new.replace(args=(moved.args[0], *others))
        made = rule(inner, inner)
        return None if made is None else moved.replace(args=(made,))

    return applied


def _spread(parameter: RelayExpr, pixels: int, together: bool) -> RelayExpr | None:
    """A scalar as it is; a bias per channel for each of the pixels, those of a channel ``together`` or all channels of
    a pixel."""

    def spread(numbers: Any) -> Any:
        return np.repeat(numbers, pixels) if together else np.tile(numbers, pixels)

    found = integers_of(parameter)
    if found is None:
        value = value_of(parameter)
        return parameter if value is not None and value.size == 1 else None
    scale, zero = (
        one if one.data.numpy().size == 1 else const(spread(one.data.numpy()))
        for one in (found.scale, found.zero)
    )
    if not isinstance(found.data, Constant):
        return None
    return Integers(const(spread(found.data.data.numpy())), scale, zero, 0).real()


def _dense(old: Call, new: Call) -> RelayExpr | None:
    made = _product("qnn.dense", new, 0, -1)
    return _dynamic_dense(new) if made is None else made


def _dynamic_dense(expr: Call) -> RelayExpr | None:
    """A dense layer whose data have one scale, or one for each row, that only the program knows. Its sums have no
    single scale then, and are scaled in float32: ``(sums - zero[row] * sum(weights)) * scale[row] * scale[unit]``."""
    data, weight = expr.args[0], integers_of(expr.args[1])
    attrs: Any = expr.attrs
    if weight is None or not isinstance(data, Call) or not is_call(data, "qnn.dequantize"):
        return None
    if not weight.is_scalar and weight.axis != 0:
        return None
    integers, scale, zero = data.args
    rank = len(shape_of(integers))
    dtypes = str(tensor_of(integers).dtype), weight.dtype
    if rank != 2 or any(dtype not in NARROW for dtype in dtypes) or attrs.out_dtype not in ("", "float32"):
        return None
    options: Any = data.attrs
    by_row = any(shape_of(one) not in ((), (1,)) for one in (scale, zero))
    if by_row and options.axis % rank != 0:
        return None
    made = Op.get("qnn.dense").get_attr("AttrsClass")(units=attrs.units, out_dtype="int32")
    parameters = (ZERO, weight.zero, ONE, weight.scale)
    sums: RelayExpr = Call(Op.get("qnn.dense"), (integers, weight.data, *parameters), made)
    value = value_of(zero)
    if value is None or value.any():
        of_weight = spread(weight.zero, tensor_of(weight.zero), rank, 0)
        shifted = call("subtract", call("cast", weight.data, dtype="int32"), of_weight)
        of_rows = call("cast", spread(zero, tensor_of(zero), rank, 0), dtype="int32")
        sums = call("subtract", sums, call("multiply", of_rows, call("sum", shifted, axis=(1,))))
    numbers = call("cast", sums, dtype="float32")
    numbers = call("multiply", numbers, spread(scale, tensor_of(scale), rank, 0))
    return call("multiply", numbers, spread(weight.scale, tensor_of(weight.scale), rank, 1))


def _batch_matmul(old: Call, new: Call) -> RelayExpr | None:
    return _product("qnn.batch_matmul", new, -1, -1)


def _matmul(old: Call, new: Call) -> RelayExpr | None:
    """Rows times a matrix, as a dense layer with the matrix transposed."""
    attrs: Any = new.attrs
    if attrs.transpose_a:
        return None
    matrix = new.args[1]
    if not attrs.transpose_b:
        turned = _transposed(matrix, (1, 0))
        if turned is None:
            return None
        matrix = turned
    made = call("nn.dense", new.args[0], matrix, units=attrs.units)
    return _dense(made, made)


def _bias_add(old: Call, new: Call) -> RelayExpr | None:
    """A bias with the scale of the sums that it is added to."""
    sums, bias = (integers_of(argument) for argument in new.args)
    if sums is None or bias is None or sums.dtype != "int32" or bias.dtype != "int32":
        return None
    attrs: Any = new.attrs
    scales = [each.scale.data.numpy().reshape(-1) for each in (sums, bias)]
    zeros = [each.zero.data.numpy() for each in (sums, bias)]
    axis = attrs.axis % len(shape_of(sums.data))
    if any(zero.any() for zero in zeros) or not (sums.is_scalar or sums.axis == axis):
        return None
    if scales[0].shape != scales[1].shape or not np.allclose(scales[0], scales[1], rtol=CLOSE, atol=0):
        return None
    return sums.real(call("nn.bias_add", sums.data, bias.data, axis=attrs.axis))


# Elements that move, or are compared


def _moved(old: Call, new: Call) -> RelayExpr | None:
    found = integers_of(new.args[0])
    if found is None or not found.is_scalar:
        return None
    return found.real(new.replace(args=(found.data, *new.args[1:])), -1)


def _transposed(expr: RelayExpr, axes: tuple[int, ...]) -> RelayExpr | None:
    found = integers_of(expr)
    if found is None:
        return None
    return found.real(call("transpose", found.data, axes=axes), axes.index(found.axis))


def _transpose(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    rank = len(shape_of(old))
    axes = tuple(axis % rank for axis in attrs.axes) if attrs.axes else tuple(reversed(range(rank)))
    return _transposed(new.args[0], axes) if rank else None


def _reshape(old: Call, new: Call) -> RelayExpr | None:
    """Scales of the last axis stay with it where it stays; a shape that is made again was never another one."""
    inner = new.args[0]
    if isinstance(inner, Call) and is_call(inner, "reshape") and _same_shape(old, inner.args[0]):
        return inner.args[0]
    found = integers_of(inner)
    if found is None and isinstance(inner, Call) and is_call(inner, "qnn.dequantize"):
        # One scale is the same for any shape, also where only the program knows it.
        if all(shape_of(one) in ((), (1,)) for one in inner.args[1:]):
            moved = new.replace(args=(inner.args[0],))
            return call("qnn.dequantize", moved, *inner.args[1:], axis=-1)
    if found is None or found.is_scalar:
        return _moved(old, new)
    before, after = shape_of(new.args[0]), shape_of(old)
    kept = after and found.axis == len(before) - 1 and before[-1] == after[-1]
    return found.real(new.replace(args=(found.data,)), len(after) - 1) if kept else None


def _same_shape(one: RelayExpr, other: RelayExpr) -> bool:
    shapes = shape_of(one), shape_of(other)
    return shapes[0] == shapes[1] and all(isinstance(extent, int) for extent in shapes[0])


def _concatenate(old: Call, new: Call) -> RelayExpr | None:
    fields = new.args[0]
    if not isinstance(fields, Tuple):
        return None
    parts = [integers_of(part) for part in fields.fields]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts) or not all(part.same(known[0]) for part in known):
        return None
    return known[0].real(new.replace(args=(Tuple([part.data for part in known]),)), -1)


def _pad(old: Call, new: Call) -> RelayExpr | None:
    """A border of zeros is one of zero points."""
    found, attrs = integers_of(new.args[0]), new.attrs
    value = value_of(new.args[1])
    if found is None or not found.is_scalar or value is None or value.any():
        return None
    border = const(found.zero.data.numpy().astype(found.dtype).reshape(()))
    return found.real(new.replace(args=(found.data, border), attrs=attrs), -1)


def _resize(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    return _moved(old, new) if "nearest" in attrs.method else None


def _relu(old: Call, new: Call) -> RelayExpr | None:
    """What stands for less than zero becomes the zero point."""
    found = integers_of(new.args[0])
    if found is None:
        return None
    zero = spread_array(found.zero.data.numpy(), len(shape_of(old)), found.axis)
    return found.real(call("maximum", found.data, const(zero.astype(found.dtype))))


# Back to integers


def _quantize(old: Call, new: Call) -> RelayExpr | None:
    """Sums with a scale of their own; nothing, where the scale is the one that was there."""
    scale, zero = new.args[1:]
    options: Any = new.attrs
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if scale.data.numpy().size != 1 or zero.data.numpy().size != 1 or options.out_dtype not in NARROW:
        return None
    data = _unclipped(new.args[0], scale, zero, options.out_dtype)
    found = integers_of(data)
    if found is None:
        return None if data is new.args[0] else new.replace(args=(data, scale, zero))
    if found.dtype in NARROW:
        wanted = Integers(found.data, scale, zero, -1)
        return found.data if found.dtype == options.out_dtype and found.same(wanted) else None
    if found.dtype != "int32":
        return None
    return call(
        "qnn.requantize",
        _positive(found.data, zero, options.out_dtype),
        found.scale,
        found.zero,
        scale,
        zero,
        axis=found.axis,
        rounding=options.rounding,
        out_dtype=options.out_dtype,
        compute_dtype="float32",
    )


def _unclipped(data: RelayExpr, scale: Constant, zero: Constant, dtype: str) -> RelayExpr:
    """Numbers without bounds that the integers of the type do not reach: quantising saturates there, or before."""
    least, most = limits(dtype)
    while isinstance(data, Call) and is_call(data, "clip"):
        attrs: Any = data.attrs
        bounds = np.array([attrs.a_min, attrs.a_max], np.float32) / scale.data.numpy().reshape(())
        low, high = np.rint(bounds) + float(zero.data.numpy().reshape(()))
        if low > least or high < most:
            break
        data = data.args[0]
    return data


def _positive(data: RelayExpr, zero: Constant, dtype: str) -> RelayExpr:
    """Sums without a maximum with zero, where the least integer stands for zero: clipping does the same."""
    if int(zero.data.numpy().reshape(())) != limits(dtype)[0]:
        return data
    if isinstance(data, Call) and is_call(data, "maximum"):
        bound = value_of(data.args[1])
        if bound is not None and not bound.any():
            return data.args[0]
    return data


_RULES: Final[dict[str, Callable[[Call, Call], RelayExpr | None]]] = {
    **dict.fromkeys(MOVING, _moved),
    "nn.conv2d": _convolution("qnn.conv2d"),
    "nn.conv2d_transpose": _convolution_transposed,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": _batch_matmul,
    "nn.bias_add": _before_pixels_move(_bias_add),
    "transpose": _transpose,
    "reshape": _reshape,
    "take": _moved,
    "concatenate": _concatenate,
    "nn.pad": _pad,
    "image.resize2d": _resize,
    "nn.relu": _before_pixels_move(_relu),
    "qnn.quantize": _before_pixels_move(_quantize),
}


@dataclass
class SinkDequantize(FunctionPass):
    """Move ``qnn.dequantize`` below operators that give the same on integers."""

    name = "SinkDequantize"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter(_RULES), func)
