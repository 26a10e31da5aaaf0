"""What the pooling operators share: type relations, references and computations, over any number of axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.definition import Relation
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import pad_sides, padded_array, per_axis, slid_extents, taps
from tilewright.relay.op.shapes import dims, same, tensor
from tilewright.tir.data_layout import Layout


def result_layout(attrs: Any) -> str:
    """The layout of the result: the one that is requested, else the data's."""
    return str(attrs.out_layout or attrs.layout)


def plain_axes(layout: str, space: str) -> str:
    """The axes of a layout, those that are not pooled first."""
    return (
        "".join(axis for axis in sorted(Layout(layout).primal_axes(), reverse=True) if axis not in space)
        + space
    )


def pool_relation(space: str) -> Relation:
    """The relation of pooling over windows."""

    def pooling(types: Sequence[Type], attrs: Any) -> Type | None:
        def slid(extents: Sequence[Any]) -> Sequence[Any]:
            kernel = per_axis(attrs.pool_size, len(space), "pool_size")
            return slid_extents(
                extents, kernel, attrs.strides, attrs.padding, attrs.dilation, attrs.ceil_mode
            )

        return _pooled_type(types[0], attrs, space, slid)

    return pooling


def _pooled_type(
    data_type: Type, attrs: Any, space: str, pooled: Callable[[Sequence[Any]], Sequence[Any]]
) -> Type | None:
    """The type of a result, from its spatial extents as a function of the data's."""
    data = tensor(data_type, "the data")
    if data is None:
        return None
    axes = plain_axes(attrs.layout, space)
    given = whole_extents(dims(data), attrs.layout, axes, "the data")
    rest = len(axes) - len(space)
    shape = (*given[:rest], *pooled(given[rest:]))
    return TensorType(laid_out(shape, axes, result_layout(attrs), "the result"), data.dtype)


def pool_grad_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The gradient of the data has their type; that of the result must fit."""
    grad, data = tensor(types[0], "the gradient"), tensor(types[1], "the data")
    if grad is None or data is None:
        return None
    pooled = pool_relation("HW")([data], attrs)
    if isinstance(pooled, TensorType):
        for given, wanted in zip(dims(grad), dims(pooled), strict=True):
            same(given, wanted, "the shape of the gradient")
    return data


def adaptive_relation(space: str) -> Relation:
    """The relation of pooling to a given size."""

    def adaptive_pooling(types: Sequence[Type], attrs: Any) -> Type | None:
        return _pooled_type(types[0], attrs, space, lambda extents: output_sizes(attrs, extents))

    return adaptive_pooling


def output_sizes(attrs: Any, extents: Sequence[Any]) -> tuple[Any, ...]:
    """The size to pool to: the one that is given, the input's where none is, one for a global pooling."""
    size = getattr(attrs, "output_size", 1)
    if size is None or size == ():
        return tuple(extents)
    sizes = per_axis(size, len(extents), "output_size")
    return tuple(extent if one is None else one for one, extent in zip(sizes, extents, strict=True))


def lowest(dtype: Any) -> Any:
    """The least value of an element type."""
    if np.dtype(dtype).kind in "iu":
        return np.iinfo(dtype).min
    return -np.inf


class PoolReference:
    """Pooling of an array, its pooled axes brought to the end."""

    def __init__(self, space: str, attrs: Any, shape: Sequence[int]) -> None:
        self.axes = plain_axes(attrs.layout, space)
        self.attrs = attrs
        self.count = len(space)
        extents = whole_extents(shape, attrs.layout, self.axes, "the data")
        self.rest = len(self.axes) - self.count
        self.extents: tuple[Any, ...] = extents[self.rest :]
        self.kernel = per_axis(attrs.pool_size, self.count, "pool_size")
        self.strides = per_axis(attrs.strides, self.count, "strides")
        self.dilation = per_axis(attrs.dilation, self.count, "dilation")
        self.before, self.after = pad_sides(attrs.padding, self.count)
        self.sizes: tuple[Any, ...] = slid_extents(
            self.extents, self.kernel, attrs.strides, attrs.padding, attrs.dilation, attrs.ceil_mode
        )

    def padded(self, data: Any, value: Any) -> Any:
        """The data with the padding, and with what the last window of ``ceil_mode`` reaches."""
        more = [stride - 1 if self.attrs.ceil_mode else 0 for stride in self.strides]
        after = [last + extra for last, extra in zip(self.after, more, strict=True)]
        whole = converted_array(data, self.attrs.layout, self.axes)
        return padded_array(whole, self.rest, self.before, after, value)

    def views(self, padded: Any) -> Any:
        """The elements that each tap of the window reads."""
        return taps(padded, self.rest, self.kernel, self.strides, self.dilation, self.sizes)

    def counts(self) -> Any:
        """How many elements each window averages over; what is beyond the padding never counts."""
        inside = self.before if self.attrs.count_include_pad else (0,) * self.count
        beyond = self.after if self.attrs.count_include_pad else (0,) * self.count
        each = []
        for axis in range(self.count):
            starts = np.arange(self.sizes[axis]) * self.strides[axis] - self.before[axis]
            places = starts[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
            valid = (places >= -inside[axis]) & (places < self.extents[axis] + beyond[axis])
            each.append(valid.sum(axis=1))
        return np.maximum(_outer(each), 1)

    def back(self, made: Any, layout: str) -> Any:
        """A result brought to a layout."""
        return converted_array(made, self.axes, layout)


def _outer(factors: Sequence[Any]) -> Any:
    """The product of one vector for each axis."""
    total: Any = np.ones((), np.int64)
    for factor in factors:
        total = total[..., None] * factor
    return total


def divided(total: Any, counts: Any, dtype: Any) -> Any:
    """Sums divided by counts; integers towards zero, as the compiled program does."""
    if np.dtype(dtype).kind in "iu":
        return (np.sign(total) * (np.abs(total) // counts)).astype(dtype)
    return (total / counts).astype(dtype)


def _wide(dtype: Any) -> Any:
    return np.int64 if np.dtype(dtype).kind in "iu" else np.float64


def reference_max_pool(space: str) -> Any:
    """The reference of the largest element of each window."""

    def reference(attrs: Any, data: Any) -> Any:
        pool = PoolReference(space, attrs, data.shape)
        made: Any = None
        for _, view in pool.views(pool.padded(data, lowest(data.dtype))):
            made = view.copy() if made is None else np.maximum(made, view, out=made)
        return pool.back(made, result_layout(attrs))

    return reference


def reference_avg_pool(space: str) -> Any:
    """The reference of the average of each window."""

    def reference(attrs: Any, data: Any) -> Any:
        pool = PoolReference(space, attrs, data.shape)
        total: Any = None
        for _, view in pool.views(pool.padded(data, 0)):
            part = view.astype(_wide(data.dtype))
            total = part if total is None else np.add(total, part, out=total)
        return pool.back(divided(total, pool.counts(), data.dtype), result_layout(attrs))

    return reference


def reference_max_pool_grad(attrs: Any, grad: Any, data: Any) -> Any:
    """Each gradient goes to the first largest element of its window."""
    pool = PoolReference("HW", attrs, data.shape)
    grads = converted_array(grad, result_layout(attrs), pool.axes)
    padded = pool.padded(data, lowest(data.dtype))
    largest: Any = None
    for _, view in pool.views(padded):
        largest = view.copy() if largest is None else np.maximum(largest, view, out=largest)
    made = np.zeros(padded.shape, np.float64)
    taken = np.zeros(largest.shape, bool)
    for (_, view), (_, sink) in zip(pool.views(padded), pool.views(made), strict=True):
        first = (view == largest) & ~taken
        taken |= first
        sink += np.where(first, grads, 0)
    return pool.back(_cropped(made, pool), attrs.layout).astype(data.dtype)


def reference_avg_pool_grad(attrs: Any, grad: Any, data: Any) -> Any:
    """Each gradient is spread evenly over its window."""
    pool = PoolReference("HW", attrs, data.shape)
    grads = converted_array(grad, result_layout(attrs), pool.axes)
    made = np.zeros(pool.padded(data, 0).shape, np.float64)
    share = grads / pool.counts()
    for _, sink in pool.views(made):
        sink += share
    return pool.back(_cropped(made, pool), attrs.layout).astype(data.dtype)


def _cropped(padded: Any, pool: PoolReference) -> Any:
    inner = tuple(
        slice(first, first + extent) for first, extent in zip(pool.before, pool.extents, strict=True)
    )
    return padded[(slice(None),) * pool.rest + inner]


def reference_adaptive(space: str, kind: str) -> Any:
    """The reference of pooling to a given size: windows as even as the sizes allow."""

    def reference(attrs: Any, data: Any) -> Any:
        axes = plain_axes(attrs.layout, space)
        whole = converted_array(data, attrs.layout, axes)
        rest = len(axes) - len(space)
        extents = whole.shape[rest:]
        sizes = output_sizes(attrs, extents)
        made = np.zeros((*whole.shape[:rest], *sizes), data.dtype)
        lead = (slice(None),) * rest
        over = tuple(range(rest, whole.ndim))
        for place in product(*(range(size) for size in sizes)):
            window = tuple(
                slice(at * extent // size, -(-(at + 1) * extent // size))
                for at, extent, size in zip(place, extents, sizes, strict=True)
            )
            part = whole[lead + window]
            if kind == "max":
                made[lead + place] = part.max(axis=over)
            else:
                total = part.astype(_wide(data.dtype)).sum(axis=over)
                made[lead + place] = divided(total, prod(part.shape[rest:]), data.dtype)
        return converted_array(made, axes, result_layout(attrs))

    return reference
