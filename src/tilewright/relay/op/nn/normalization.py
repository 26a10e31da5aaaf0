"""Batch, layer, instance and group normalisation, L2 normalisation, and local response normalisation.

References work in float64: first the mean, then the mean of squared differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, along_axis, moved_axis
from tilewright.relay.op.nn.activation import vector_completion
from tilewright.relay.op.nn.layout_conversion import channel_layouts
from tilewright.relay.op.relations import floating_type
from tilewright.relay.op.shapes import dims, normal_axes, normal_axis, require_multiple, same, tensors
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.normalization import batch_norm as compute_batch_norm
from tilewright.topi.nn.normalization import group_norm as compute_group_norm
from tilewright.topi.nn.normalization import instance_norm as compute_instance_norm
from tilewright.topi.nn.normalization import l2_normalize as compute_l2_normalize
from tilewright.topi.nn.normalization import layer_norm as compute_layer_norm


@attributes
class BatchNormAttrs(OpAttrs):
    """batch_norm: ``beta`` is added where ``center``, ``gamma`` multiplied where ``scale``."""

    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attributes
class InstanceNormAttrs(OpAttrs):
    """instance_norm; see ``BatchNormAttrs``."""

    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attributes
class LayerNormAttrs(OpAttrs):
    """layer_norm; see ``BatchNormAttrs``."""

    axis: int = -1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attributes
class GroupNormAttrs(OpAttrs):
    """group_norm; see ``BatchNormAttrs``."""

    num_groups: int = 0
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attributes
class L2NormalizeAttrs(OpAttrs):
    """l2_normalize: all axes where none is given."""

    eps: float = 0.0
    axis: Any = None


@attributes
class LRNAttrs(OpAttrs):
    """lrn: the window along ``axis``, and the constants of the formula."""

    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-4
    beta: float = 0.75


def normalization_relation(types: Sequence[Type], attrs: Any) -> TensorType | None:
    """Data, and vectors along an axis of them."""
    found = tensors(types, *["the data", "gamma", "beta", "the mean", "the variance"][: len(types)])
    if found is None:
        return None
    data = found[0]
    extent = dims(data)[normal_axis(attrs.axis, len(data.shape))]
    for vector, what in zip(found[1:], ("gamma", "beta", "the mean", "the variance"), strict=False):
        if len(vector.shape) != 1:
            raise RelationError(f"{what} is a vector, not a tensor of {len(vector.shape)} dimensions")
        same(dims(vector)[0], extent, f"the length of {what}, and the data's axis {attrs.axis}")
    return data


def batch_norm_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The normalised data, the mean and the variance."""
    data = normalization_relation(types, attrs)
    return None if data is None else TupleType((data, types[3], types[4]))


def group_norm_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``normalization_relation``; the channels must fall into groups."""
    data = normalization_relation(types, attrs)
    if data is not None:
        channels = dims(data)[attrs.axis]
        if attrs.num_groups < 1:
            raise RelationError(f"there is one group or more, not {attrs.num_groups}")
        require_multiple(
            channels, attrs.num_groups, f"{channels} channels do not fall into {attrs.num_groups} groups"
        )
    return data


def _along(vector: Any, rank: int, axis: int) -> Any:
    shape = [1] * rank
    shape[axis] = -1
    return vector.astype(np.float64).reshape(shape)


def _affine(attrs: Any, value: Any, gamma: Any, beta: Any) -> Any:
    rank = value.ndim
    if attrs.scale:
        value = value * _along(gamma, rank, attrs.axis)
    return value + _along(beta, rank, attrs.axis) if attrs.center else value


def _normalized(data: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """Mean 0 and variance 1 over axes, in float64."""
    wide = data.astype(np.float64)
    centred = wide - wide.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)


def _parameters(attrs: Any, gamma: Tensor, beta: Tensor) -> tuple[Tensor | None, Tensor | None]:
    return (gamma if attrs.scale else None), (beta if attrs.center else None)


# Batch


def _batch_norm_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, gamma, beta, given_mean, given_variance = inputs
    made, mean, variance = compute_batch_norm(
        data, gamma, beta, given_mean, given_variance, attrs.axis, attrs.epsilon, attrs.center, attrs.scale
    )
    return [made, topi.identity(mean), topi.identity(variance)]


def _batch_norm_reference(attrs: Any, data: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    rank = data.ndim
    centred = data.astype(np.float64) - _along(mean, rank, attrs.axis)
    value = centred / np.sqrt(_along(variance, rank, attrs.axis) + attrs.epsilon)
    return _affine(attrs, value, gamma, beta).astype(data.dtype), mean, variance


def _batch_norm_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    one = channel_layouts(attrs, offered, original, types)
    return Layouts(one.inputs, (*one.outputs, *tuple(original[3:5])), one.attrs)


BATCH_NORM = define(
    "nn.batch_norm",
    arguments=("data", "gamma", "beta", "moving_mean", "moving_var"),
    attrs=BatchNormAttrs,
    relation=batch_norm_relation,
    completion=vector_completion,
    compute=_batch_norm_compute,
    reference=_batch_norm_reference,
    layout=_batch_norm_layouts,
    kind=OpPattern.OPAQUE,
    level=1,
    description="Normalisation with known means and variances.",
)


def batch_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    moving_mean: RelayExpr,
    moving_var: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    """``(data - mean) / sqrt(variance + epsilon) * gamma + beta`` along ``axis``; and the mean and the variance."""
    arguments = (data, gamma, beta, moving_mean, moving_var)
    return TupleWrapper(Call(BATCH_NORM, arguments, BatchNormAttrs(axis, epsilon, center, scale)), 3)


# Layer, instance, group


def _define_norm(
    name: str,
    attrs: type[Any],
    compute: Callable[..., Tensor],
    axes: Callable[[Any, int], tuple[int, ...]],
    layout: Callable[..., Layouts],
    kind: OpPattern = OpPattern.OPAQUE,
) -> Op:
    def reference(attrs: Any, data: Any, gamma: Any, beta: Any) -> Any:
        value = _normalized(data, axes(attrs, data.ndim), attrs.epsilon)
        return _affine(attrs, value, gamma, beta).astype(data.dtype)

    def computed(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        parameters = _parameters(attrs, inputs[1], inputs[2])
        return [compute(inputs[0], *parameters, attrs.axis, epsilon=attrs.epsilon)]

    return define(
        name,
        arguments=("data", "gamma", "beta"),
        attrs=attrs,
        relation=normalization_relation,
        completion=vector_completion,
        compute=computed,
        reference=reference,
        layout=layout,
        kind=kind,
        level=1,
        description="Normalisation to mean 0 and variance 1.",
    )


def _all_but_batch_and_channel(attrs: Any, rank: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(1, rank) if axis != attrs.axis % rank)


def _items_first(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """As ``channel_layouts``; the items of the batch must stay in front, whole."""
    home, new = original[0], offered[0] if offered else None
    if home is not None and new is not None and (new[0] != home[0] or new.factor_of(home[0]) > 0):
        offered = (home, *offered[1:])
    return channel_layouts(attrs, offered, original, types)


LAYER_NORM = _define_norm(
    "nn.layer_norm",
    LayerNormAttrs,
    compute_layer_norm,
    lambda attrs, rank: (attrs.axis % rank,),
    channel_layouts,
    OpPattern.OUT_ELEMWISE_FUSABLE,
)
INSTANCE_NORM = _define_norm(
    "nn.instance_norm", InstanceNormAttrs, compute_instance_norm, _all_but_batch_and_channel, _items_first
)


def _group_norm_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    parameters = _parameters(attrs, inputs[1], inputs[2])
    return [compute_group_norm(inputs[0], *parameters, attrs.num_groups, attrs.axis, epsilon=attrs.epsilon)]


def _group_norm_reference(attrs: Any, data: Any, gamma: Any, beta: Any) -> Any:
    axis = attrs.axis % data.ndim
    shape = data.shape
    split = data.reshape(*shape[:axis], attrs.num_groups, -1, *shape[axis + 1 :])
    axes = tuple(place for place in range(1, split.ndim) if place != axis)
    value = _normalized(split, axes, attrs.epsilon).reshape(shape)
    return _affine(attrs, value, gamma, beta).astype(data.dtype)


GROUP_NORM = define(
    "nn.group_norm",
    arguments=("data", "gamma", "beta"),
    attrs=GroupNormAttrs,
    relation=group_norm_relation,
    completion=vector_completion,
    compute=_group_norm_compute,
    reference=_group_norm_reference,
    layout=_items_first,
    kind=OpPattern.OPAQUE,
    level=1,
    description="Normalisation of groups of channels to mean 0 and variance 1.",
)


def layer_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    axis: int = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Mean 0 and variance 1 along ``axis``, then times ``gamma`` plus ``beta``."""
    return Call(LAYER_NORM, (data, gamma, beta), LayerNormAttrs(axis, epsilon, center, scale))


def instance_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Mean 0 and variance 1 of each channel of each item, then times ``gamma`` plus ``beta`` of the channel."""
    return Call(INSTANCE_NORM, (data, gamma, beta), InstanceNormAttrs(axis, epsilon, center, scale))


def group_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Mean 0 and variance 1 of each group of channels of each item, then times ``gamma`` plus ``beta``."""
    attrs = GroupNormAttrs(num_groups, axis, epsilon, center, scale)
    return Call(GROUP_NORM, (data, gamma, beta), attrs)


# By length, and by the response around


def l2_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Floating-point numbers, over some of their axes."""
    data = floating_type(types, attrs)
    if isinstance(data, TensorType):
        normal_axes(attrs.axis or None, len(data.shape))
    return data


def _l2_reference(attrs: Any, data: Any) -> Any:
    wide = data.astype(np.float64)
    axes = normal_axes(attrs.axis or None, data.ndim)
    length = np.sqrt(np.maximum((wide * wide).sum(axis=axes, keepdims=True), attrs.eps))
    return (wide / length).astype(data.dtype)


def _l2_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    home, new = original[0], offered[0] if offered else None
    if home is None or new is None:
        return Layouts((home,), (home,), attrs)
    if not attrs.axis:
        return Layouts((new,), (new,), attrs)
    moved = [moved_axis(axis, home, new) for axis in attrs.axis]
    if None in moved:
        return Layouts((home,), (home,), attrs)
    return Layouts((new,), (new,), attrs.replace(axis=tuple(moved)))


L2_NORMALIZE = define(
    "nn.l2_normalize",
    arguments=("data",),
    attrs=L2NormalizeAttrs,
    relation=l2_relation,
    compute=lambda attrs, inputs, out_type: [compute_l2_normalize(inputs[0], attrs.eps, attrs.axis)],
    reference=_l2_reference,
    layout=_l2_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    description="Data divided by their length along axes.",
)


def l2_normalize(data: RelayExpr, eps: float, axis: Any = None) -> Call:
    """``data / sqrt(max(sum(data ** 2), eps))``, summed over the axes; over all where none is given."""
    axes = (axis,) if isinstance(axis, int) else axis
    return Call(L2_NORMALIZE, (data,), L2NormalizeAttrs(eps, axes))


def lrn_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Floating-point numbers, and a window along one of their axes. Who computes it asks that its size is odd."""
    data = floating_type(types, attrs)
    if isinstance(data, TensorType):
        normal_axis(attrs.axis, len(data.shape))
        if attrs.size < 1:
            raise RelationError(f"the size of the window is positive, not {attrs.size}")
    return data


def _lrn_reference(attrs: Any, data: Any) -> Any:
    if attrs.size % 2 == 0:
        raise OpAttributeInvalid(f"lrn: the size of the window is odd and positive, not {attrs.size}")
    wide = np.moveaxis(data.astype(np.float64), attrs.axis, 0)
    half = attrs.size // 2
    padded = np.pad(wide * wide, [(half, half)] + [(0, 0)] * (wide.ndim - 1))
    energy = sum(padded[start : start + len(wide)] for start in range(attrs.size))
    made = wide / (attrs.bias + attrs.alpha / attrs.size * energy) ** attrs.beta
    return np.moveaxis(made, 0, attrs.axis).astype(data.dtype)


LRN = define(
    "nn.lrn",
    arguments=("data",),
    attrs=LRNAttrs,
    relation=lrn_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.lrn(inputs[0], attrs.size, attrs.axis, attrs.alpha, attrs.beta, attrs.bias)
    ],
    reference=_lrn_reference,
    layout=along_axis,
    kind=OpPattern.OPAQUE,
    level=2,
    description="Data divided by a power of the energy around them.",
)


def lrn(
    data: RelayExpr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 1e-5,
    beta: float = 0.75,
) -> Call:
    """``data / (bias + alpha / size * sum(data ** 2)) ** beta``, summed over ``size`` neighbours along ``axis``."""
    return Call(LRN, (data,), LRNAttrs(size, axis, bias, alpha, beta))
