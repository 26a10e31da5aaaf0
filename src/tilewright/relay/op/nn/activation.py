"""Activations, softmax and its logarithm, bias and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, TupleType, Type
from tilewright.relay.expr import Call, TupleGetItem, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, number
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, along_axis, elementwise
from tilewright.relay.op.nn.layout_conversion import channel_layouts
from tilewright.relay.op.relations import floating_type, same_type
from tilewright.relay.op.shapes import dims, normal_axis, same, tensor
from tilewright.te.tensor import Tensor


@attributes
class BiasAddAttrs(OpAttrs):
    """bias_add: the axis along which the biases are."""

    axis: int = 1


@attributes
class LeakyReluAttrs(OpAttrs):
    """leaky_relu: the slope below zero."""

    alpha: float = 0.25


@attributes
class PReluAttrs(OpAttrs):
    """prelu: the axis along which the slopes are."""

    axis: int = 1


@attributes
class SoftmaxAttrs(OpAttrs):
    """softmax and log_softmax: the axis along which the results add up to one."""

    axis: int = -1


@attributes
class DropoutAttrs(OpAttrs):
    """dropout: how likely an element is to be dropped."""

    rate: float = 0.5


# Elementwise


def _relu_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    data = orig.args[0]
    zeros = call("zeros_like", data)
    return [call("where", call("less_equal", data, zeros), zeros, grad)]


RELU = define(
    "nn.relu",
    arguments=("data",),
    relation=same_type,
    compute=lambda attrs, inputs, out_type: [topi.nn.relu(inputs[0])],
    reference=lambda attrs, data: np.where(data < 0, np.zeros((), data.dtype), data),
    gradient=_relu_gradient,
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    level=1,
    description="The larger of each element and zero; NaN and zeros stay as they are.",
)


def relu(data: RelayExpr) -> Call:
    """The larger of each element and zero; NaN and zeros stay as they are."""
    return Call(RELU, (data,))


def _leaky(data: Any, slope: Any) -> Any:
    return np.where(data > 0, data, (data * slope).astype(data.dtype))


def _leaky_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    data = orig.args[0]
    below = grad * number(orig.attrs.alpha, data)
    return [call("where", call("greater", data, call("zeros_like", data)), grad, below)]


LEAKY_RELU = define(
    "nn.leaky_relu",
    arguments=("data",),
    attrs=LeakyReluAttrs,
    relation=same_type,
    compute=lambda attrs, inputs, out_type: [topi.nn.leaky_relu(inputs[0], attrs.alpha)],
    reference=lambda attrs, data: _leaky(data, np.asarray(attrs.alpha, data.dtype)),
    gradient=_leaky_gradient,
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    description="Each element, times a slope where it is below zero.",
)


def leaky_relu(data: RelayExpr, alpha: float = 0.01) -> Call:
    """Each element, times ``alpha`` where it is not above zero."""
    return Call(LEAKY_RELU, (data,), LeakyReluAttrs(alpha))


# One value for each index along an axis


def _along(types: Sequence[Type], attrs: Any, what: str) -> Type | None:
    """The data's type, where the values are a vector as long as the data's axis."""
    data, values = tensor(types[0], "the data"), tensor(types[1], what)
    if data is None or values is None:
        return None
    axis = normal_axis(attrs.axis, len(data.shape))
    if len(values.shape) != 1:
        raise RelationError(f"{what} is a vector, not a tensor of {len(values.shape)} dimensions")
    same(dims(values)[0], dims(data)[axis], f"the length of {what}, and the data's axis {attrs.axis}")
    return data


def vector_completion(types: Sequence[Type], attrs: Any) -> Sequence[Type | None]:
    """The types of vectors along ``axis`` that have none, after the data."""
    data = types[0]
    if not isinstance(data, TensorType):
        return (None,) * len(types)
    extent = dims(data)[normal_axis(attrs.axis, len(data.shape))]
    vector = TensorType((extent,), data.dtype)
    return (None, *(vector if isinstance(each, IncompleteType) else None for each in types[1:]))


def _shaped_along(vector: Any, rank: int, axis: int) -> Any:
    """A vector as a tensor of this rank, along an axis of it."""
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


def bias_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Data, and a vector along an axis of it."""
    return _along(types, attrs, "the bias")


def _bias_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, bias = inputs
    rank = len(data.shape)
    behind = rank - 1 - attrs.axis % rank
    wide = topi.expand_dims(bias, axis=1, num_newaxis=behind) if behind else bias
    return [topi.add(data, wide)]


def _bias_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    return [grad, call("sum", grad, axis=orig.attrs.axis, keepdims=False, exclude=True)]


BIAS_ADD = define(
    "nn.bias_add",
    arguments=("data", "bias"),
    attrs=BiasAddAttrs,
    relation=bias_relation,
    completion=vector_completion,
    compute=_bias_compute,
    reference=lambda attrs, data, bias: data + _shaped_along(bias, data.ndim, attrs.axis),
    gradient=_bias_gradient,
    layout=channel_layouts,
    kind=OpPattern.BROADCAST,
    level=1,
    description="A bias added along an axis.",
)


def bias_add(data: RelayExpr, bias: RelayExpr, axis: int = 1) -> Call:
    """``bias[i]`` added to every element at index ``i`` along ``axis``."""
    return Call(BIAS_ADD, (data, bias), BiasAddAttrs(axis))


def prelu_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Data, and a vector along an axis of it."""
    return _along(types, attrs, "alpha")


PRELU = define(
    "nn.prelu",
    arguments=("data", "alpha"),
    attrs=PReluAttrs,
    relation=prelu_relation,
    completion=vector_completion,
    compute=lambda attrs, inputs, out_type: [topi.nn.prelu(inputs[0], inputs[1], attrs.axis)],
    reference=lambda attrs, data, alpha: _leaky(data, _shaped_along(alpha, data.ndim, attrs.axis)),
    layout=channel_layouts,
    kind=OpPattern.BROADCAST,
    description="Each element, times a slope of its channel where it is below zero.",
)


def prelu(data: RelayExpr, alpha: RelayExpr, axis: int = 1) -> Call:
    """Each element, times ``alpha[i]`` where it is not above zero and at index ``i`` along ``axis``."""
    return Call(PRELU, (data, alpha), PReluAttrs(axis))


# Softmax


def softmax_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Floating-point numbers, along one of their axes."""
    data = floating_type(types, attrs)
    if isinstance(data, TensorType):
        normal_axis(attrs.axis, len(data.shape))
    return data


def _shifted(data: Any, axis: int) -> Any:
    wide = data.astype(np.float64)
    return wide - wide.max(axis=axis, keepdims=True, initial=-np.inf)


def reference_softmax(data: Any, axis: int) -> Any:
    """exp(x) / sum(exp(x)) along an axis, in float64."""
    raised = np.exp(_shifted(data, axis))
    return (raised / raised.sum(axis=axis, keepdims=True)).astype(data.dtype)


def reference_log_softmax(data: Any, axis: int) -> Any:
    """The logarithm of softmax, in float64."""
    shifted = _shifted(data, axis)
    return (shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(data.dtype)


def _softmax_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    total = call("sum", call("multiply", grad, orig), axis=orig.attrs.axis, keepdims=True)
    return [call("multiply", call("subtract", grad, total), orig)]


def _log_softmax_gradient(orig: Any, grad: RelayExpr) -> list[RelayExpr]:
    total = call("sum", grad, axis=orig.attrs.axis, keepdims=True)
    probabilities = call("nn.softmax", orig.args[0], axis=orig.attrs.axis)
    return [call("subtract", grad, call("multiply", total, probabilities))]


SOFTMAX = define(
    "nn.softmax",
    arguments=("data",),
    attrs=SoftmaxAttrs,
    relation=softmax_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.softmax(inputs[0], attrs.axis)],
    reference=lambda attrs, data: reference_softmax(data, attrs.axis),
    gradient=_softmax_gradient,
    layout=along_axis,
    kind=OpPattern.OPAQUE,
    level=1,
    description="exp(x) / sum(exp(x)) along an axis.",
)

FAST_SOFTMAX = define(
    "nn.fast_softmax",
    arguments=("data",),
    attrs=SoftmaxAttrs,
    relation=softmax_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.fast_softmax(inputs[0], attrs.axis)],
    reference=lambda attrs, data: reference_softmax(data, attrs.axis),
    layout=along_axis,
    kind=OpPattern.OPAQUE,
    level=1,
    description="softmax with an approximate exponential.",
)

LOG_SOFTMAX = define(
    "nn.log_softmax",
    arguments=("data",),
    attrs=SoftmaxAttrs,
    relation=softmax_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.log_softmax(inputs[0], attrs.axis)],
    reference=lambda attrs, data: reference_log_softmax(data, attrs.axis),
    gradient=_log_softmax_gradient,
    layout=along_axis,
    kind=OpPattern.OPAQUE,
    level=1,
    description="The logarithm of softmax.",
)


def softmax(data: RelayExpr, axis: int = -1) -> Call:
    """exp(x) / sum(exp(x)) along an axis."""
    return Call(SOFTMAX, (data,), SoftmaxAttrs(axis))


def fast_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """``softmax`` with an approximate exponential."""
    return Call(FAST_SOFTMAX, (data,), SoftmaxAttrs(axis))


def log_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """The logarithm of ``softmax``."""
    return Call(LOG_SOFTMAX, (data,), SoftmaxAttrs(axis))


# Dropout


def dropout_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The result and the mask, both of the data's type."""
    data = tensor(types[0], "the data")
    return None if data is None else TupleType((data, data))


def _dropout_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    one = elementwise(attrs, offered, original, types)
    return Layouts(one.inputs, one.outputs * 2, attrs)


DROPOUT = define(
    "nn.dropout",
    arguments=("data",),
    attrs=DropoutAttrs,
    relation=dropout_relation,
    compute=lambda attrs, inputs, out_type: [topi.identity(inputs[0]), topi.full_like(inputs[0], 1)],
    reference=lambda attrs, data: (data, np.ones_like(data)),
    layout=_dropout_layouts,
    kind=OpPattern.OPAQUE,
    level=1,
    description="At inference, the data as they are, and a mask of ones.",
)


def dropout(data: RelayExpr, rate: float = 0.5) -> TupleGetItem:
    """Elements dropped while training; at inference, the data as they are."""
    return dropout_raw(data, rate)[0]


def dropout_raw(data: RelayExpr, rate: float = 0.5) -> TupleWrapper:
    """As ``dropout``, with the mask."""
    return TupleWrapper(Call(DROPOUT, (data,), DropoutAttrs(rate)), 2)
