"""The parts of the definitions of reductions: type relations, computations, references, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, number, tensor_type
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.relations import reduced_axes, reduced_shape
from tilewright.relay.op.shapes import broadcast_shapes, dims, known, product, require, tensor, tensors
from tilewright.relay.op.tensor.reference import Array, quotient
from tilewright.te.tensor import Tensor
from tilewright.topi.arguments import accumulator_type
from tilewright.topi.arguments import product as extent_product


@attributes
class ReduceAttrs(OpAttrs):
    """The reduced axes, and whether they remain with size one."""

    axis: Any = None
    keepdims: bool = False
    exclude: bool = False


@attributes
class ArgReduceAttrs(OpAttrs):
    """As ``ReduceAttrs``, and whether the last of equal elements is the one."""

    axis: Any = None
    keepdims: bool = False
    select_last_index: bool = False
    exclude: bool = False


@attributes
class VarianceAttrs(OpAttrs):
    """As ``ReduceAttrs``, and whether the divisor is one less than the number of elements."""

    axis: Any = None
    keepdims: bool = False
    exclude: bool = False
    unbiased: bool = False


# Relations


def _reduced_type(types: Sequence[Type], attrs: Any) -> TensorType | None:
    found = tensor(types[0], "the argument")
    if found is None:
        return None
    shape = dims(found)
    axes = reduced_axes(attrs.axis, len(shape), attrs.exclude)
    return TensorType(reduced_shape(shape, axes, attrs.keepdims), found.dtype)


def number_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of a reduction of numbers."""
    made = _reduced_type(types, attrs)
    if made is not None and made.dtype.is_bool:
        raise RelationError("the argument is of type bool, and numbers are needed; convert it with cast")
    return made


def boolean_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of a reduction to bool."""
    made = _reduced_type(types, attrs)
    return made and TensorType(made.shape, "bool")


def extreme_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of a greatest or least element, of which there must be one."""
    found = tensor(types[0], "the argument")
    if found is not None:
        shape = dims(found)
        for axis in reduced_axes(attrs.axis, len(shape), attrs.exclude):
            message = f"axis {axis} has no elements, of which none is the greatest or least"
            require(lambda extent: extent > 0, (shape[axis],), message)
    return _reduced_type(types, attrs)


def position_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of the position of such an element."""
    made = extreme_type(types, attrs)
    return TensorType(made.shape, "int32") if isinstance(made, TensorType) else None


def variance_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The type of the variance of data around a mean."""
    found = tensors(types, "the data", "the mean")
    if found is None:
        return None
    data, mean = found
    if data.dtype is not mean.dtype:
        raise RelationError(f"data and mean have different element types, {data.dtype} and {mean.dtype}")
    broadcast_shapes(dims(data), dims(mean))
    return number_type(types[:1], attrs)


# Computation


def _axes_of(attrs: Any, data: Tensor) -> list[int]:
    return list(reduced_axes(attrs.axis, len(data.shape), attrs.exclude))


def truth(data: Tensor) -> Tensor:
    """True where an element is not zero."""
    return topi.logical_not(topi.logical_not(data))


def combined(
    combination: Callable[..., Tensor], of_none: Callable[[Tensor], Tensor]
) -> Callable[[Any, Sequence[Tensor], Any], list[Tensor]]:
    """Computes a reduction; ``of_none`` serves where there is no axis to reduce."""

    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        axes = _axes_of(attrs, inputs[0])
        if not axes:
            return [of_none(inputs[0])]
        return [combination(inputs[0], axis=axes, keepdims=attrs.keepdims)]

    return compute


def positions(
    combination: Callable[..., Tensor],
) -> Callable[[Any, Sequence[Tensor], Any], list[Tensor]]:
    """Computes positions; where there is no axis to reduce, they are zero."""

    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        axes = _axes_of(attrs, inputs[0])
        if not axes:
            return [topi.full(inputs[0].shape, "int32", 0)]
        last = attrs.select_last_index
        return [combination(inputs[0], axis=axes, keepdims=attrs.keepdims, select_last_index=last)]

    return compute


def _converted(data: Tensor, dtype: str) -> Tensor:
    return data if data.dtype == dtype else topi.cast(data, dtype)


def _divided_sum(attrs: Any, data: Tensor, less: int) -> Tensor:
    """The sum divided by the number of elements, less some."""
    axes = _axes_of(attrs, data)
    total = topi.sum(data, axis=axes, keepdims=attrs.keepdims) if axes else data
    count = extent_product([data.shape[axis] for axis in axes]) - less
    return topi.divide(total, topi.cast(count, data.dtype))  # type: ignore[no-any-return]


def mean(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    """The mean of 16-bit floats, whose sum may overflow where their mean does not, is computed in float32."""
    wide = _converted(inputs[0], accumulator_type(inputs[0].dtype))
    return [_converted(_divided_sum(attrs, wide, 0), inputs[0].dtype)]


def variance(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    """The mean of the squared differences, in float32 for 16-bit floats."""
    wide = accumulator_type(inputs[0].dtype)
    data, mean = (_converted(one, wide) for one in inputs)
    difference = topi.subtract(data, mean)
    squares = topi.multiply(difference, difference)
    return [_converted(_divided_sum(attrs, squares, int(attrs.unbiased)), inputs[0].dtype)]


# References


def reduced_by(function: Callable[..., Any], to_bool: bool = False) -> Callable[..., Array]:
    """The reference of a reduction from a function of NumPy."""

    def reduced(attrs: Any, data: Array) -> Array:
        axes = reduced_axes(attrs.axis, data.ndim, attrs.exclude)
        made = function(data, axis=axes, keepdims=attrs.keepdims)
        return np.asarray(made).astype(np.bool_ if to_bool else data.dtype, copy=False)

    return reduced


def _accumulator(data: Array) -> Any:
    """The type in which the reference adds up: floats in double precision, integers in their own arithmetic."""
    return data.dtype if np.issubdtype(data.dtype, np.integer) else np.float64


def sum_reference(data: Array, axis: Any, keepdims: bool) -> Any:
    """The sum."""
    return np.sum(data, axis=axis, keepdims=keepdims, dtype=_accumulator(data))


def prod_reference(data: Array, axis: Any, keepdims: bool) -> Any:
    """The product."""
    return np.prod(data, axis=axis, keepdims=keepdims, dtype=_accumulator(data))


def position_reference(function: Callable[..., Any]) -> Callable[..., Array]:
    """The reference of positions from a function of NumPy."""

    def position(attrs: Any, data: Array) -> Array:
        axes = reduced_axes(attrs.axis, data.ndim, attrs.exclude)
        others = [axis for axis in range(data.ndim) if axis not in axes]
        left: Any = reduced_shape(data.shape, axes, attrs.keepdims)
        count = math.prod(data.shape[axis] for axis in axes)
        rows = data.transpose(*others, *axes).reshape(*(data.shape[axis] for axis in others), count)
        if attrs.select_last_index:
            found = rows.shape[-1] - 1 - function(rows[..., ::-1], axis=-1)
        else:
            found = function(rows, axis=-1)
        return np.asarray(found, dtype=np.int32).reshape(left)

    return position


def mean_of(attrs: Any, values: Array, less: int, dtype: Any) -> Array:
    """The sum divided by the number of elements, less some."""
    axes = reduced_axes(attrs.axis, values.ndim, attrs.exclude)
    total = np.asarray(sum_reference(values, axis=axes, keepdims=attrs.keepdims))
    count = int(np.prod([values.shape[axis] for axis in axes], dtype=np.int64)) - less
    return np.asarray(quotient(total, np.asarray(count, dtype=total.dtype))).astype(dtype)


def variance_reference(attrs: Any, data: Array, mean: Array) -> Array:
    """The mean of the squared differences."""
    wide = _accumulator(data)
    squares = np.square(data.astype(wide) - mean.astype(wide))
    return mean_of(attrs, squares, int(attrs.unbiased), data.dtype)


# Gradients


def spread(result: Call, value: RelayExpr) -> RelayExpr:
    """A value in the shape of the result repeated along the reduced axes, in the shape of the argument."""
    data = result.args[0]
    attrs: Any = result.attrs
    if not attrs.keepdims:
        for axis in reduced_axes(attrs.axis, len(tensor_type(data).shape), attrs.exclude):
            value = call("expand_dims", value, axis=axis, num_newaxis=1)
    return call("broadcast_to_like", value, data)


def _count(result: Call, less: int = 0) -> RelayExpr:
    """How many elements are combined into one, as a scalar of the element type."""
    data = result.args[0]
    attrs: Any = result.attrs
    shape = dims(tensor_type(data))
    combined = [shape[axis] for axis in reduced_axes(attrs.axis, len(shape), attrs.exclude)]
    if known(*combined):
        return number(int(product(combined)) - less, data)  # type: ignore[arg-type]
    count = call("ndarray_size", data) / call("ndarray_size", result)
    return call("cast", count, dtype=tensor_type(data).dtype) - number(less, data)


def mean_gradient(result: Call, grad: Any) -> list[RelayExpr]:
    """Every element has an equal share."""
    return [spread(result, grad / _count(result))]


def extreme_gradient(result: Call, grad: Any) -> list[RelayExpr]:
    """To the elements that are the extreme; where there are several, in equal parts."""
    data = result.args[0]
    attrs: Any = result.attrs
    chosen: Any = call("cast_like", call("equal", data, spread(result, result)), data)
    several = call("sum", chosen, axis=attrs.axis, keepdims=attrs.keepdims, exclude=attrs.exclude)
    return [chosen * spread(result, grad / several)]


def variance_gradient(result: Call, grad: Any) -> list[RelayExpr]:
    """Twice the difference from the mean, by the number of elements."""
    data: Any = result.args[0]
    mean = result.args[1]
    share = grad / _count(result, int(result.attrs.unbiased))  # type: ignore[union-attr]
    slope = number(2, data) * (data - mean) * spread(result, share)
    return [slope, call("collapse_sum_like", -slope, mean)]
