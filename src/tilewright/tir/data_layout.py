"""Names of memory layouts, and the conversion of indices and shapes between them.

In ``NCHW16c`` a capital letter is an axis and a small letter with a number is a part of it: element ``(n, c, h, w)`` is
at ``(n, c // 16, h, w, c % 16)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.container import Array
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr
from tilewright.support.errors import ExpressionError

_UNDEFINED = ("", "__undef__")
_PART = re.compile(r"(\d*)([A-Za-z])")


class Layout:
    """An order of axes and parts of axes; equal to any layout of the same name."""

    __slots__ = ("_axes", "_factors", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._axes: list[str] = []
        self._factors: dict[str, int] = {}
        if not self.defined:
            return
        position = 0
        while position < len(name):
            match = _PART.match(name, position)
            if match is None:
                raise ExpressionError(f"layout {name!r}: {name[position]!r} is not an axis")
            self._add_axis(match.group(1), match.group(2))
            position = match.end()
        for axis in self._factors:
            if axis.upper() not in self._axes:
                raise ExpressionError(
                    f"layout {name!r} has a part {axis} of an axis {axis.upper()} that it does not have"
                )

    def _add_axis(self, number: str, axis: str) -> None:
        """One more axis or part of an axis, checked."""
        if axis in self._axes:
            raise ExpressionError(f"layout {self.name!r} has the axis {axis} twice")
        if axis.isupper() and number:
            raise ExpressionError(
                f"layout {self.name!r}: the axis {axis} cannot have a number; small letters can"
            )
        if axis.islower():
            if not number or int(number) == 0:
                raise ExpressionError(f"layout {self.name!r}: the part {axis} needs a number, as in 16{axis}")
            self._factors[axis] = int(number)
        self._axes.append(axis)

    @property
    def defined(self) -> bool:
        """False for the undefined layout, ``__undef__``."""
        return self.name not in _UNDEFINED

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __len__(self) -> int:
        return len(self._axes)

    def __contains__(self, axis: object) -> bool:
        return axis in self._axes

    def __getitem__(self, index: int) -> str:
        if not -len(self._axes) <= index < len(self._axes):
            raise IndexError(
                f"layout {self.name} has {len(self._axes)} axes, there is no axis number {index}"
            )
        return self._axes[index]

    def index_of(self, axis: str) -> int:
        """The position of an axis, or -1."""
        return self._axes.index(axis) if axis in self._axes else -1

    def factor_of(self, axis: str) -> int:
        """The size of the part that is split off an axis, or -1 where none is."""
        return self._factors.get(axis.lower(), -1)

    def primal_axes(self) -> list[str]:
        """The axes, without their parts."""
        return [axis for axis in self._axes if axis.isupper()]


class BijectiveLayout:
    """The conversion from one layout to another that has the same axes."""

    __slots__ = ("dst_layout", "src_layout")

    def __init__(self, src_layout: Layout, dst_layout: Layout) -> None:
        self.src_layout = src_layout
        self.dst_layout = dst_layout

    def forward_index(self, index: Sequence[ExprLike]) -> Array[PrimExpr]:
        """Where an element of the source layout is in the destination."""
        return _convert_index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[ExprLike]) -> Array[PrimExpr]:
        """Where an element of the destination layout is in the source."""
        return _convert_index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The shape in the destination layout."""
        return _convert_shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The shape in the source layout."""
        return _convert_shape(self.dst_layout, self.src_layout, shape)

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"


def _checked(layout: Layout, values: Sequence[ExprLike]) -> dict[str, PrimExpr]:
    """The values by axis."""
    if len(values) != len(layout):
        raise ExpressionError(f"layout {layout.name} has {len(layout)} axes, {len(values)} values were given")
    return {layout[position]: operators.as_expr(value) for position, value in enumerate(values)}


def _convert_index(source: Layout, destination: Layout, index: Sequence[ExprLike]) -> Array[PrimExpr]:
    """Join the parts of every axis, then split them as the destination does."""
    given = _checked(source, index)
    whole: dict[str, PrimExpr] = {}
    for axis in source.primal_axes():
        factor = source.factor_of(axis)
        value = given[axis]
        whole[axis] = (
            value if factor < 0 else operators.add(operators.multiply(value, factor), given[axis.lower()])
        )
    made: list[PrimExpr] = []
    for position in range(len(destination)):
        axis = destination[position]
        factor = destination.factor_of(axis)
        value = whole[axis.upper()]
        if factor < 0:
            made.append(value)
        else:
            made.append(
                operators.floordiv(value, factor) if axis.isupper() else operators.floormod(value, factor)
            )
    return Array(made)


def _convert_shape(source: Layout, destination: Layout, shape: Sequence[ExprLike]) -> Array[PrimExpr]:
    """Multiply the parts of every axis, then divide them as the destination does; constants must divide."""
    given = _checked(source, shape)
    whole: dict[str, PrimExpr] = {}
    for axis in source.primal_axes():
        factor = source.factor_of(axis)
        whole[axis] = given[axis]
        if factor > 0:
            part = given[axis.lower()]
            if isinstance(part, IntImm) and part.value != factor:
                raise ExpressionError(
                    f"the part {axis.lower()} of layout {source.name} has size {factor}, not {part.value}"
                )
            whole[axis] = operators.multiply(given[axis], factor)
    made: list[PrimExpr] = []
    for position in range(len(destination)):
        axis = destination[position]
        factor = destination.factor_of(axis)
        extent = whole[axis.upper()]
        if factor < 0:
            made.append(extent)
        elif axis.islower():
            made.append(operators.const(factor, extent.dtype))
        else:
            if isinstance(extent, IntImm) and extent.value % factor != 0:
                raise ExpressionError(
                    f"an axis {axis} of {extent.value} does not divide by {factor}, as {destination} needs"
                )
            made.append(operators.floordiv(extent, factor))
    return Array(made)


def layout(layout_str: str) -> Layout:
    """The layout of this name."""
    return Layout(layout_str)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """The conversion between two layouts, or None where they do not have the same axes."""
    source = src_layout if isinstance(src_layout, Layout) else Layout(src_layout)
    destination = dst_layout if isinstance(dst_layout, Layout) else Layout(dst_layout)
    if not source.defined or not destination.defined:
        return None
    if sorted(source.primal_axes()) != sorted(destination.primal_axes()):
        return None
    return BijectiveLayout(source, destination)
