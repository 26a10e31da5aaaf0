"""Slicing and padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import (
    Extent,
    as_scalar,
    element,
    extent_of,
    from_front,
    int64,
    scalar,
    shape_vector,
    vector,
    with_known,
)
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter

Bounds = tuple[Extent, Extent, int]
"""Begin, end and step."""

TO_THE_END = np.iinfo(np.int64).max


def sliced(
    node: Node, data: RelayExpr, bounds: Mapping[int, Bounds], sizes: Mapping[int, Extent] | None = None
) -> RelayExpr:
    """The part of a tensor between bounds on some of its axes, as Python slices. ``sizes`` are extents of the result
    that are known."""
    axes = sorted(bounds)
    begins, ends, steps = ([bounds[axis][place] for axis in axes] for place in range(3))
    if all(isinstance(one, int) for one in (*begins, *ends)):
        return relay.strided_slice(data, begins, ends, steps, axes)
    every = range(axes[-1] + 1)
    whole: Bounds = (0, TO_THE_END, 1)
    first, last, step = (
        vector(node, [bounds.get(axis, whole)[place] for axis in every]) for place in range(3)
    )
    made = relay.strided_slice(data, first, last, step)
    known = list(node.shape(data))
    for axis in axes:
        size = (sizes or {}).get(axis)
        known[axis] = size if isinstance(size, int) else None
    return with_known(node, made, known)


@converter("Slice")
def slice_attributes(node: Node, data: RelayExpr) -> RelayExpr:
    """Bounds as attributes, before opset 10."""
    begins, ends = node.attr("starts"), node.attr("ends")
    axes = node.attr("axes", list(range(len(begins))))
    return _with_numbers(node, data, list(begins), list(ends), list(axes), [1] * len(begins))


@converter("Slice", since=10)
def slice_inputs(
    node: Node,
    data: RelayExpr,
    starts: RelayExpr,
    ends: RelayExpr,
    axes: RelayExpr | None = None,
    steps: RelayExpr | None = None,
) -> RelayExpr:
    """Bounds as inputs."""
    begin = node.partial(starts)
    if begin is None:
        raise node.needs_value(starts, "starts, whose length is not known,")
    count = len(begin)
    places = None if axes is None else node.value(axes)
    strides = None if steps is None else node.value(steps)
    if (axes is not None and places is None) or (steps is not None and strides is None):
        return _at_computed_axes(node, data, starts, ends, axes, steps, count)
    numbers = list(range(count)) if places is None else [int(one) for one in places.reshape(-1)]
    by = [1] * count if strides is None else [int(one) for one in strides.reshape(-1)]
    first = [element(node, starts, place) for place in range(count)]
    last = [element(node, ends, place) for place in range(count)]
    return _with_numbers(node, data, first, last, numbers, by)


def _with_numbers(
    node: Node,
    data: RelayExpr,
    begins: Sequence[Extent],
    ends: Sequence[Extent],
    axes: Sequence[int],
    steps: Sequence[int],
) -> RelayExpr:
    rank = node.rank(data)
    if not len(begins) == len(ends) == len(axes) == len(steps):
        raise node.fail(f"{len(begins)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    if 0 in steps:
        raise node.fail("a step is zero")
    bounds = {
        node.from_front(axis, rank): (begin, end, step)
        for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True)
    }
    if not bounds:
        return data
    made = sliced(node, data, bounds)
    items = node.partial(data) if rank == 1 else None
    begin, end, step = bounds.get(0, (0, 0, 1))
    if items is None or not isinstance(begin, int) or not isinstance(end, int):
        return made
    last = None if step < 0 and end < -len(items) else end
    return node.graph.note_partial(made, items[slice(begin, last, step)])


def _at_computed_axes(
    node: Node,
    data: RelayExpr,
    starts: RelayExpr,
    ends: RelayExpr,
    axes: RelayExpr | None,
    steps: RelayExpr | None,
    count: int,
) -> RelayExpr:
    """Axes that the program computes: the bounds are put in their places in vectors for all axes."""
    rank = node.rank(data)
    given = node.constants(range(count)) if axes is None else int64(node, axes)
    places = from_front(node, given, rank)
    by = node.constants([1] * count) if steps is None else int64(node, steps)
    strides = relay.scatter(node.constants([1] * rank), places, by, 0)
    first = relay.scatter(node.constants([0] * rank), places, int64(node, starts), 0)
    last = relay.scatter(shape_vector(node, data), places, int64(node, ends), 0)
    return relay.strided_slice(data, first, last, strides)


# Padding


@converter("Pad")
def pad_attributes(node: Node, data: RelayExpr) -> RelayExpr:
    """Widths as an attribute, before opset 11."""
    rank = node.rank(data)
    widths = [int(one) for one in node.attr("pads", None) or node.attr("paddings")]
    value = const(float(node.attr("value", 0.0)), node.dtype(data))
    return padded(node, data, widths[:rank], widths[rank:], value, str(node.attr("mode", "constant")))


@converter("Pad", since=11)
@converter("Pad", domain=MICROSOFT_DOMAIN)
def pad_inputs(
    node: Node,
    data: RelayExpr,
    pads: RelayExpr,
    value: RelayExpr | None = None,
    axes: RelayExpr | None = None,
) -> RelayExpr:
    """Widths as an input, for all axes or for some. A negative width takes elements away."""
    rank = node.rank(data)
    count = rank
    mode = str(node.attr("mode", "constant"))
    fill = const(0, node.dtype(data)) if value is None else scalar(node, value)
    numbers = list(range(rank))
    if axes is not None:
        places = node.value(axes)
        if places is None:
            return _padded_at_computed_axes(node, data, pads, fill, axes, mode)
        numbers = [int(one) % rank for one in places.reshape(-1)]
        count = len(numbers)
    before: list[Extent] = [0] * rank
    after: list[Extent] = [0] * rank
    for place, axis in enumerate(numbers):
        before[axis], after[axis] = element(node, pads, place), element(node, pads, count + place)
    return padded(node, data, before, after, fill, mode)


def _padded_at_computed_axes(
    node: Node, data: RelayExpr, pads: RelayExpr, fill: RelayExpr, axes: RelayExpr, mode: str
) -> RelayExpr:
    rank, count = node.rank(data), node.static_shape(axes, "axes")[0]
    places = from_front(node, int64(node, axes), rank)
    widths = int64(node, pads)
    sides = [
        relay.scatter(
            node.constants([0] * rank),
            places,
            relay.strided_slice(widths, [side * count], [(side + 1) * count]),
            0,
        )
        for side in (0, 1)
    ]
    before, after = ([element(node, side, axis) for axis in range(rank)] for side in sides)
    return padded(node, data, before, after, fill, mode)


_MODES = ("constant", "edge", "reflect", "wrap")


def padded(
    node: Node,
    data: RelayExpr,
    before: Sequence[Extent],
    after: Sequence[Extent],
    fill: RelayExpr,
    mode: str,
) -> RelayExpr:
    """A tensor continued on both sides of each axis."""
    if mode not in _MODES:
        raise node.fail(f"the mode is one of {', '.join(_MODES)}, not {mode!r}")
    known = [
        (one, other)
        for one, other in zip(before, after, strict=True)
        if isinstance(one, int) and isinstance(other, int)
    ]
    if len(known) < len(before):
        return _computed_widths(node, data, before, after, fill, mode)
    if not any(one or other for one, other in known):
        return data
    wide = [(max(one, 0), max(other, 0)) for one, other in known]
    made = _cut(node, data, known)
    if mode == "constant":
        return relay.nn.pad(made, wide, fill) if any(one or other for one, other in wide) else made
    for axis, (one, other) in enumerate(wide):
        if one or other:
            made = _continued(node, made, axis, one, other, mode)
    return made


def _cut(node: Node, data: RelayExpr, widths: Sequence[tuple[int, int]]) -> RelayExpr:
    """Crops by negative widths."""
    bounds: dict[int, Bounds] = {
        axis: (max(-one, 0), other if other < 0 else TO_THE_END, 1)
        for axis, (one, other) in enumerate(widths)
        if one < 0 or other < 0
    }
    return sliced(node, data, bounds) if bounds else data


def _continued(node: Node, data: RelayExpr, axis: int, before: int, after: int, mode: str) -> RelayExpr:
    """One axis continued by its own elements."""
    extent = node.shape(data)[axis]
    widths = [(before, after) if place == axis else (0, 0) for place in range(node.rank(data))]
    if mode == "edge":
        return relay.nn.pad(data, widths, pad_mode="edge")
    if mode == "reflect" and (extent is None or max(before, after) < extent):
        return relay.nn.pad(data, widths, pad_mode="reflect")
    if extent is None:
        return _wrapped(node, data, axis, before, after)
    # A mirror image that is wider than the data is mirrored again, as NumPy does.
    places = np.pad(np.arange(extent), (before, after), mode=mode)  # type: ignore[call-overload]
    return relay.take(data, const(places.astype("int64")), axis=axis)


def _wrapped(node: Node, data: RelayExpr, axis: int, before: Extent, after: Extent) -> RelayExpr:
    """One axis continued by its other end."""
    extent = as_scalar(extent_of(node, data, axis))
    first = relay.negative(as_scalar(before))
    places = relay.arange(first, relay.add(extent, as_scalar(after)), const(1, "int64"), "int64")
    return relay.take(data, relay.floor_mod(places, extent), axis=axis)


def _computed_widths(
    node: Node,
    data: RelayExpr,
    before: Sequence[Extent],
    after: Sequence[Extent],
    fill: RelayExpr,
    mode: str,
) -> RelayExpr:
    extents = node.shape(data)
    if mode == "wrap":
        for axis, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != 0 or other != 0:
                data = _wrapped(node, data, axis, one, other)
        return data
    pairs = relay.stack([vector(node, before), vector(node, after)], 1)
    made = relay.nn.pad(data, pairs, fill, mode)
    known = [
        extent + one + other
        if extent is not None and isinstance(one, int) and isinstance(other, int)
        else None
        for extent, one, other in zip(extents, before, after, strict=True)
    ]
    return with_known(node, made, known)


@converter("CenterCropPad", since=18)
def center_crop_pad(node: Node, data: RelayExpr, shape: RelayExpr) -> RelayExpr:
    """The middle of axes that are too long, zeros on both sides of those that are too short."""
    rank = node.rank(data)
    axes = [int(axis) % rank for axis in node.attr("axes", range(rank))]
    wanted, have = node.value(shape), node.shape(data)
    if wanted is None or any(have[axis] is None for axis in axes):
        return node.graph.expand(node, [data, shape])[0]  # type: ignore[no-any-return]
    bounds: dict[int, Bounds] = {}
    widths = [(0, 0)] * rank
    for axis, size in zip(axes, wanted.reshape(-1).tolist(), strict=True):
        extent = have[axis]
        assert extent is not None
        if extent > size:
            first = (extent - size) // 2
            bounds[axis] = (first, first + size, 1)
        elif extent < size:
            first = (size - extent) // 2
            widths[axis] = (first, size - extent - first)
    made = sliced(node, data, bounds) if bounds else data
    return relay.nn.pad(made, widths, const(0, node.dtype(data))) if any(map(any, widths)) else made


@converter("Trilu", since=14)
@converter("Trilu", domain=MICROSOFT_DOMAIN)
def trilu(node: Node, data: RelayExpr, k: RelayExpr | None = None) -> RelayExpr:
    """The triangle of matrices above or below a diagonal, zero elsewhere."""
    rows, columns = (
        relay.arange(const(0, "int64"), as_scalar(extent_of(node, data, axis)), const(1, "int64"), "int64")
        for axis in (-2, -1)
    )
    diagonal = const(0, "int64") if k is None else scalar(node, int64(node, k))
    distance = relay.subtract(relay.expand_dims(columns, 0), relay.expand_dims(rows, 1))
    kept = (
        relay.greater_equal(distance, diagonal)
        if node.attr("upper", 1)
        else relay.less_equal(distance, diagonal)
    )
    return relay.where(kept, data, const(0, node.dtype(data)))
