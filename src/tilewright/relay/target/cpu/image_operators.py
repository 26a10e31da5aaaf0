"""Operators on lines and volumes as operators on their images: padding, slices, concatenation, pooling and reductions.

A line is an image of one row, a volume a batch of its frames (see ``convolve_images``). What stays within rows,
columns and channels means the same there; what moves or combines frames does not, and is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.rewriting import Constants
from tilewright.topi.nn.utils import pad_amounts, per_axis

LINE: Final = 3
"""The rank of lines: batch, channels, columns."""

_AXES: Final[dict[int, dict[int, int]]] = {3: {0: 0, 1: 1, 2: 3}, 5: {1: 1, 3: 2, 4: 3}}
"""By rank, the axes of lines and volumes that are axes of their images as well."""

OnImages = Callable[[Call, Sequence[RelayExpr], Constants, Constants], RelayExpr | None]
"""(the call, the images of its operands, the shapes of its first operand and of its result) to the call on images."""


def _padded(made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants) -> RelayExpr | None:
    attrs: Any = made.attrs
    axes = _AXES[len(shape)]
    widths = [(0, 0)] * 4
    for axis, (before, after) in enumerate(attrs.pad_width):
        if axis in axes:
            widths[axes[axis]] = (before, after)
        elif before or after:
            return None
    return call("nn.pad", images[0], *made.args[1:], pad_width=tuple(widths), pad_mode=attrs.pad_mode)


def _sliced(made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants) -> RelayExpr | None:
    attrs: Any = made.attrs
    if len(made.args) > 1 or attrs.begin is None or attrs.end is None or len(attrs.begin) != len(attrs.end):
        return None
    places = range(len(attrs.begin)) if attrs.axes is None else [axis % len(shape) for axis in attrs.axes]
    strides = attrs.strides or ()
    kept: list[tuple[int, int | None, int | None, int]] = []
    for place, axis in enumerate(places):
        step = strides[place] if place < len(strides) else 1
        if step > 0 and shape[axis] == result[axis]:
            continue
        if axis not in _AXES[len(shape)]:
            return None
        kept.append((_AXES[len(shape)][axis], attrs.begin[place], attrs.end[place], step))
    if not kept:
        return images[0]
    axes, begin, end, steps = zip(*kept, strict=True)
    return call(
        "strided_slice",
        images[0],
        begin=begin,
        end=end,
        strides=steps,
        slice_mode=attrs.slice_mode,
        axes=axes,
    )


def _concatenated(
    made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants
) -> RelayExpr | None:
    attrs: Any = made.attrs
    axis = _AXES[len(shape)].get(attrs.axis % len(shape))
    return None if axis is None else call("concatenate", Tuple(images), axis=axis)


def _pooled(made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants) -> RelayExpr | None:
    """Pooling along lines, or within the frames of a volume."""
    attrs: Any = made.attrs
    rank = len(shape) - 2
    name = made.op.name[: -len("1d")]  # type: ignore[attr-defined]
    if attrs.layout != {1: "NCW", 3: "NCDHW"}[rank] or attrs.out_layout not in ("", attrs.layout):
        return None
    window, strides, dilation = (
        per_axis(getattr(attrs, field), rank, field) for field in ("pool_size", "strides", "dilation")
    )
    reach = [(taps - 1) * step + 1 for taps, step in zip(window, dilation, strict=True)]
    before, after = pad_amounts(attrs.padding, reach)
    if rank > 1 and (window[0], strides[0], before[0], after[0]) != (1, 1, 0, 0):
        return None
    more = {"count_include_pad": attrs.count_include_pad} if hasattr(attrs, "count_include_pad") else {}
    return call(
        f"{name}2d",
        images[0],
        pool_size=(1, *window)[-2:],
        strides=(1, *strides)[-2:],
        dilation=(1, *dilation)[-2:],
        padding=(0, *before)[-2:] + (0, *after)[-2:],
        ceil_mode=attrs.ceil_mode,
        **more,
    )


def _pooled_to_size(
    made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants
) -> RelayExpr | None:
    attrs: Any = made.attrs
    if attrs.layout != "NCW" or attrs.out_layout not in ("", attrs.layout):
        return None
    name = made.op.name[: -len("1d")]  # type: ignore[attr-defined]
    return call(f"{name}2d", images[0], output_size=(1, result[2]))


def _reduced(
    made: Call, images: Sequence[RelayExpr], shape: Constants, result: Constants
) -> RelayExpr | None:
    """A reduction over all pixels of each image, or of all frames of one volume."""
    attrs: Any = made.attrs
    rank = len(shape)
    given = (
        range(rank)
        if attrs.axis is None
        else attrs.axis
        if isinstance(attrs.axis, Sequence)
        else [attrs.axis]
    )
    axes = {int(axis) % rank for axis in given}
    if attrs.exclude:
        axes = set(range(rank)) - axes
    if rank != LINE and not attrs.keepdims:
        return None
    if axes == ({2} if rank == LINE else {3, 4}):
        return Call(made.op, tuple(images), attrs.replace(axis=(2, 3), exclude=False))
    if rank != LINE and axes == {2, 3, 4} and shape[0] == 1:
        return Call(made.op, tuple(images), attrs.replace(axis=(0, 2, 3), exclude=False))
    return None


ON_IMAGES: Final[dict[str, OnImages]] = {
    "nn.pad": _padded,
    "strided_slice": _sliced,
    "concatenate": _concatenated,
    "nn.max_pool1d": _pooled,
    "nn.avg_pool1d": _pooled,
    "nn.max_pool3d": _pooled,
    "nn.avg_pool3d": _pooled,
    "nn.adaptive_avg_pool1d": _pooled_to_size,
    "nn.adaptive_max_pool1d": _pooled_to_size,
    **dict.fromkeys(("max", "min", "sum", "prod", "mean", "variance"), _reduced),
}
"""The operators that are computed on the images of their operands; operands of lower rank are not images."""

OTHER_OPERANDS: Final = ("nn.pad",)
"""Those whose first operand only is an image."""
