"""Layout rules: how operators adapt to other data layouts, for AlterOpLayout and ConvertLayout.

A rule is called as ``rule(attrs, offered, original, types)``. ``original`` are the layouts that the arguments have in
the program so far and ``offered`` those that they could have now, None where a layout is unknown; ``types`` are the
arguments' types before the change. A tuple argument counts as its fields, in order. The rule returns a ``Layouts``: the
required layouts of the arguments, the resulting layouts of the results, and the attributes that match them. The pass
inserts a ``layout_transform`` wherever an argument has another layout.

With nothing offered, a rule returns what follows from the layouts of the program: the layouts of the other arguments
and of the results. A layout of None leaves the argument unchanged.

A layout that a rule requires may have axes that the argument's own layout does not have (``CHW16c`` for a vector along
``W``): the argument then first gets leading axes of size one, which take the missing names.

The rules here serve most operators:

- ``elementwise``: the layout of the argument is that of the result.
- ``broadcast``: operands of the highest rank share a layout. An operand of lower rank has the last axes of it, and gets
  all of them where these change. A dimension of one that is to be split is split by one (``NCHW1c``). One number is
  unchanged.
- ``along_axis``: the result is like the argument, and the attribute ``axis`` names an axis, which must not be split.
- ``reduction``: the attributes are ``axis``, ``keepdims`` and ``exclude``; a split axis is reduced with its parts, of
  which one of size one stays with ``keepdims`` (``NCHW1c``).
- ``position_along_axis``: like ``reduction``, if the result depends on the order of the reduced elements.
- ``joined``: all arguments have one layout, and are concatenated along the attribute ``axis``.
- ``as_it_is``: every argument keeps the layout of the program, because the operator depends on the shape itself.

If a new layout does not fit (the axis of a softmax would be split, a dimension is not divisible), the rule requires the
layouts of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.relay.op.relations import reduced_axes
from tilewright.relay.op.shapes import Dimension, dims
from tilewright.tir.data_layout import Layout

MaybeLayout = Layout | None


@dataclass(frozen=True)
class Layouts:
    """The layouts of the arguments and results of a call, and the attributes under which it works on them."""

    inputs: tuple[MaybeLayout, ...]
    outputs: tuple[MaybeLayout, ...]
    attrs: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(self.outputs))

    @property
    def input_layouts(self) -> tuple[MaybeLayout, ...]:
        """TVM's name of ``inputs``."""
        return self.inputs

    @property
    def output_layouts(self) -> tuple[MaybeLayout, ...]:
        """TVM's name of ``outputs``."""
        return self.outputs

    @property
    def new_attrs(self) -> Any:
        """TVM's name of ``attrs``."""
        return self.attrs


def elementwise(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Whatever layout comes in goes out."""
    layout = next((one for one in (*offered, *original) if one is not None), None)
    return Layouts((layout,) * len(types), (layout,), attrs)


def as_it_is(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The arguments keep the layouts of the program; the result has none."""
    return Layouts(tuple(original), (None,), attrs)


def whatever(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The result does not depend on the layout (the number of elements)."""
    inputs = tuple(new or old for new, old in zip(offered or original, original, strict=True))
    return Layouts(inputs, (None,), attrs)


# Broadcasting


def broadcast(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Operands, two or more, that are aligned at their last axis; see the module's text."""
    shapes = [dims(each) for each in types]
    rank = max(len(shape) for shape in shapes)
    full = [position for position, shape in enumerate(shapes) if len(shape) == rank]
    home = next((original[position] for position in full if original[position] is not None), None)
    if home is None:
        return Layouts(tuple(original), (None,), attrs)
    plain = tuple(_last_axes(home, len(shape)) for shape in shapes)
    settled = all(
        mine is None or named is None or mine == named for mine, named in zip(original, plain, strict=True)
    )
    if not settled or any(named is None and shape for named, shape in zip(plain, shapes, strict=True)):
        return Layouts(tuple(original), (home,), attrs)
    # A layout other than the program's wins: someone asked for it.
    candidates = [offered[position] for position in full if offered and offered[position] is not None]
    candidates.sort(key=lambda layout: layout == home)
    for target in candidates:
        if target is None or set(target.primal_axes()) != set(home.primal_axes()):
            continue
        made = [_aligned(target, named, shape) for named, shape in zip(plain, shapes, strict=True)]
        fits = all(one is not None or not shape for one, shape in zip(made, shapes, strict=True))
        if fits and any(one == target for one in made):
            return Layouts(tuple(made), (target,), attrs)
    return Layouts(plain, (home,), attrs)


def _last_axes(layout: Layout, rank: int) -> MaybeLayout:
    """The layout of an operand of this rank that is aligned with one of the whole layout; None for a scalar and where
    parts of axes stand in the way."""
    if rank == len(layout):
        return layout
    if rank == 0 or len(layout.primal_axes()) != len(layout):
        return None
    return Layout("".join(layout.primal_axes()[-rank:]))


def _aligned(target: Layout, own: MaybeLayout, shape: Sequence[Dimension]) -> MaybeLayout:
    """The layout in which an operand is aligned with one of layout ``target``; None for a scalar, and where a
    dimension can not be split."""
    if own is None:
        return None
    if target == own:
        return own
    if len(own) != len(own.primal_axes()):
        # The program's layout has split axes already; its dimensions are no longer those of whole axes.
        return None
    extents = dict(zip(own.primal_axes(), shape, strict=True))
    axes: list[str] = []
    for position in range(len(target)):
        axis = target[position]
        if axis.isupper():
            axes.append(axis)
            continue
        extent, factor = extents.get(axis.upper(), 1), target.factor_of(axis)
        if extent == 1 and isinstance(extent, int):
            factor = 1
        elif not divides(extent, factor):
            return None
        axes.append(f"{factor}{axis}")
    if all(isinstance(extent, int) and extent == 1 for extent in shape) and len(own) < len(
        target.primal_axes()
    ):
        return own
    # Axes that the operand lacks are written out, as TVM writes them, unless nothing else is to be done.
    missing = len(target) - len(own)
    return own if "".join(axes[missing:]) == own.name else Layout("".join(axes))


def divides(extent: Dimension, factor: int) -> bool:
    """True if a dimension is known to be a multiple of the factor."""
    return isinstance(extent, int) and extent % factor == 0


# Operators along axes


def moved_axis(axis: int, original: Layout, new: Layout) -> int | None:
    """The position of an axis of the program's layout in the new one; None if it is split there, or missing."""
    name = original[axis]
    if new.factor_of(name) != original.factor_of(name) or name not in new:
        return None
    return new.index_of(name)


def along_axis(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """One argument, a result in its layout, and an attribute ``axis`` that moves with it."""
    home, new = _first(original), _first(offered)
    if attrs.axis is None:
        # No axis: the result is flat.
        return as_it_is(attrs, offered, original, types)
    if home is None or new is None or home == new:
        return Layouts((home,) * len(types), (home,), attrs)
    place = moved_axis(attrs.axis, home, new)
    if place is None:
        return Layouts((home,) * len(types), (home,), attrs)
    return Layouts((new,) * len(types), (new,), attrs.replace(axis=place))


def joined(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Arguments put together along ``axis``. Blocks of a split axis can be put together where each argument is made of
    whole blocks."""
    home = _first(original)
    unchanged = Layouts((home,) * len(types), (home,), attrs)
    if home is None or any(one is not None and one != home for one in original):
        return Layouts(tuple(original), (None,), attrs)
    name = home[attrs.axis]
    candidates = [one for one in offered if one is not None and one != home]
    for new in candidates:
        factor = new.factor_of(name)
        whole = factor < 0 or all(divides(dims(each)[attrs.axis], factor) for each in types)
        if name in new and home.factor_of(name) < 0 and whole:
            return Layouts((new,) * len(types), (new,), attrs.replace(axis=new.index_of(name)))
    return unchanged


def reduction(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """One argument, combined over axes. What is left of the layout is the result's."""
    return _reduced(attrs, offered, original, types, ordered=False)


def position_along_axis(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """As ``reduction``, for results that depend on the order of the elements (argmax): one axis, and whole."""
    return _reduced(attrs, offered, original, types, ordered=True)


def _reduced(
    attrs: Any,
    offered: Sequence[MaybeLayout],
    original: Sequence[MaybeLayout],
    types: Sequence[Any],
    ordered: bool,
) -> Layouts:
    home, new = _first(original), _first(offered)
    if home is None:
        return Layouts((None,) * len(types), (None,), attrs)
    reduced = [home[axis] for axis in reduced_axes(attrs.axis, len(dims(types[0])), attrs.exclude)]
    unchanged = Layouts((home,) * len(types), (_without(home, reduced, attrs.keepdims),), attrs)
    if new is None or new == home or len(home.primal_axes()) != len(home):
        return unchanged
    split = any(new.factor_of(name) > 0 for name in reduced)
    # Parts of an axis lose the order of its elements, and another argument that is repeated along it.
    if (split and (ordered or len(types) > 1)) or (ordered and len(reduced) > 1):
        return unchanged
    axes = tuple(place for place in range(len(new)) if new[place].upper() in reduced)
    if axes:
        changed = attrs.replace(axis=axes, exclude=False)
    else:
        # An empty tuple means all axes; none of them are all but all of them.
        changed = attrs.replace(axis=tuple(range(len(new))), exclude=True)
    return Layouts((new,) * len(types), (_without(new, reduced, attrs.keepdims),), changed)


def _without(layout: Layout, reduced: Sequence[str], keepdims: bool) -> MaybeLayout:
    """The layout after reducing axes; None if no axis is left. Of a reduced axis that stays, a part has one element."""
    left = []
    for place in range(len(layout)):
        axis = layout[place]
        gone = axis.upper() in reduced
        if keepdims or not gone:
            left.append(axis if axis.isupper() else f"{1 if gone else layout.factor_of(axis)}{axis}")
    return Layout("".join(left)) if left else None


def _first(layouts: Sequence[MaybeLayout]) -> MaybeLayout:
    return next((one for one in layouts if one is not None), None)
