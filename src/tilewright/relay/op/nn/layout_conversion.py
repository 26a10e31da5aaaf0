"""Converting shapes, arrays and tensors from one data layout to another.

In a layout a capital letter is a whole axis and a small letter with a number a part of it: NCHW8c. A relation that is
written for one order of whole axes ("NCHW", "OIHW") serves every layout of those axes through these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, moved_axis
from tilewright.relay.op.shapes import Dimension, Shape, combine, require_multiple, same, shape_text
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


@lru_cache(maxsize=1024)
def parsed(name: str, axes: str, what: str) -> Layout:
    """The layout of this name, which must have exactly these whole axes."""
    try:
        layout = Layout(name)
    except ExpressionError as error:
        raise RelationError(f"{what}: {error.message}") from error
    if sorted(layout.primal_axes()) != sorted(axes):
        raise RelationError(f"{what} is an order of the axes {axes}, not {name!r}")
    return layout


def whole_extents(shape: Sequence[Dimension], name: str, axes: str, what: str) -> Shape:
    """The extents of the whole axes, in the order of ``axes``, of a tensor that is in layout ``name``."""
    layout = parsed(name, axes, f"the layout of {what}")
    if len(shape) != len(layout):
        raise RelationError(
            f"{what} of layout {name} has {len(layout)} dimensions, its shape is {shape_text(shape)}"
        )
    found = []
    for axis in axes:
        extent, factor = shape[layout.index_of(axis)], layout.factor_of(axis)
        if factor > 0:
            part = shape[layout.index_of(axis.lower())]
            same(part, factor, f"{what} of layout {name}, the elements along {axis.lower()}")
            extent = combine(lambda count, factor=factor: count * factor, extent)
        found.append(extent)
    return tuple(found)


def laid_out(extents: Sequence[Dimension], axes: str, name: str, what: str) -> Shape:
    """The shape in layout ``name`` of a tensor whose whole axes have these extents."""
    layout = parsed(name, axes, f"the layout of {what}")
    whole = dict(zip(axes, extents, strict=True))
    shape: list[Dimension] = []
    for position in range(len(layout)):
        axis = layout[position]
        factor = layout.factor_of(axis)
        if axis.islower():
            shape.append(factor)
        elif factor < 0:
            shape.append(whole[axis])
        else:
            extent = whole[axis]
            require_multiple(
                extent, factor, f"{what}: an axis {axis} of {extent} does not fall into parts of {factor}"
            )
            shape.append(combine(lambda count, factor=factor: count // factor, extent))
    return tuple(shape)


def converted_array(array: Any, source: str, destination: str) -> Any:
    """An array brought from one layout to another of the same axes."""
    if source == destination:
        return array
    old, new = Layout(source), Layout(destination)
    axes = old.primal_axes()
    extents = dict(zip((old[position] for position in range(len(old))), array.shape, strict=True))
    # Every axis next to its part, then joined; after that split again and put in the new order.
    order = [
        old.index_of(letter) for axis in axes for letter in (axis, axis.lower()) if old.index_of(letter) >= 0
    ]
    whole = array.transpose(order).reshape([extents[axis] * extents.get(axis.lower(), 1) for axis in axes])
    letters: list[str] = []
    split: list[int] = []
    for axis, extent in zip(axes, whole.shape, strict=True):
        factor = new.factor_of(axis)
        letters += [axis] if factor < 0 else [axis, axis.lower()]
        split += [extent] if factor < 0 else [extent // factor, factor]
    back = [letters.index(new[position]) for position in range(len(new))]
    return np.ascontiguousarray(whole.reshape(split).transpose(back))


def converted(tensor: Tensor, source: str, destination: str) -> Tensor:
    """A tensor brought from one layout to another; the tensor itself where they are the same."""
    return tensor if source == destination else topi.layout_transform(tensor, source, destination)


def whole_axes(layout: MaybeLayout, own: str, wanted: str) -> bool:
    """True if ``layout`` has the axes of ``own``, with those of ``wanted`` not split: an operator that works along
    these axes can take it."""
    return (
        layout is not None
        and layout.defined
        and sorted(layout.primal_axes()) == sorted(Layout(own).primal_axes())
        and all(layout.factor_of(axis) < 0 for axis in wanted)
    )


def spatial_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The rule of operators that work along the spatial axes: any layout that leaves those whole will do, unless the
    layout of the result is named."""
    rest = tuple(original[1:]) if original else ()
    named = getattr(attrs, "out_layout", "")
    if named:
        return Layouts((Layout(attrs.layout), *rest), (Layout(named),), attrs)
    spatial = "".join(axis for axis in Layout(attrs.layout).primal_axes() if axis in "DHW")
    takes = bool(offered) and whole_axes(offered[0], attrs.layout, spatial)
    chosen = offered[0] if takes and offered[0] is not None else Layout(attrs.layout)
    return Layouts((chosen, *rest), (chosen,), attrs.replace(layout=chosen.name))


def channel_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The rule of operators with one value for each index along the attribute ``axis``: the data may have any layout
    in which that axis stays whole; the values are as they were."""
    home = original[0] if original else None
    new = offered[0] if offered else None
    rest = tuple(original[1:])
    if home is None or new is None:
        return Layouts((home, *rest), (home,), attrs)
    place = moved_axis(attrs.axis, home, new)
    if place is None:
        return Layouts((home, *rest), (home,), attrs)
    return Layouts((new, *rest), (new,), attrs.replace(axis=place))
