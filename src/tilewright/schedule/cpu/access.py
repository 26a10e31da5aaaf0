"""How the address of each load depends on each axis, found by evaluating the indices at sample points.

A scheduler needs to know whether a load is contiguous along an axis over a tile of a given size, and whether it depends
on the axis at all. Both are answered numerically rather than symbolically, so blocked layouts (``n // 16``, ``n %
16``), strides and reshapes need no patterns of their own. Dynamic sizes are replaced by an assumed one: the answers
only select a schedule, they never affect what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

from tilewright.ir.expr import Call, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Var
from tilewright.ir.functor import Functor, post_order
from tilewright.ir.structural import structural_equal
from tilewright.support.recursion import recursion_room
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor

ASSUMED_SIZE: Final = 32
"""The size that is assumed for a dynamic dimension."""


class _Unknown(Exception):
    """Raised for an index that cannot be evaluated because it depends on data."""


class _Evaluate(Functor):
    """Evaluates an integer expression for given values of the variables."""

    def __init__(self, values: Mapping[Var, int]) -> None:
        self.values = values

    def visit_default(self, node: Any) -> int:
        raise _Unknown

    def visit_int_imm(self, node: Any) -> int:
        return int(node.value)

    def visit_var(self, node: Any) -> int:
        return self.values.get(node, ASSUMED_SIZE)

    def visit_cast(self, node: Any) -> int:
        return int(self.visit(node.value))

    def visit_any(self, node: Any) -> int:
        return ASSUMED_SIZE

    def visit_binary_op_expr(self, node: Any) -> int:
        a, b = self.visit(node.a), self.visit(node.b)
        return _BINARY[type(node).__name__](a, b)

    def visit_cmp_expr(self, node: Any) -> int:
        return int(_COMPARE[type(node).__name__](self.visit(node.a), self.visit(node.b)))

    def visit_and(self, node: Any) -> int:
        return int(self.visit(node.a) and self.visit(node.b))

    def visit_or(self, node: Any) -> int:
        return int(self.visit(node.a) or self.visit(node.b))

    def visit_not(self, node: Any) -> int:
        return int(not self.visit(node.a))

    def visit_select(self, node: Any) -> int:
        return int(self.visit(node.true_value if self.visit(node.condition) else node.false_value))


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise _Unknown
    return a // b


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise _Unknown
    return a % b


_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
    "Mod": _remainder,
    "FloorDiv": _divide,
    "FloorMod": _remainder,
    "Min": min,
    "Max": max,
}
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


def assumed(size: PrimExpr) -> int:
    """The size if it is constant, otherwise an assumed one; at least 0."""
    if isinstance(size, IntImm):
        return int(size.value)
    try:
        return max(int(_Evaluate({}).visit(size)), 0)
    except _Unknown:
        return ASSUMED_SIZE


def constant_extent(axis: IterVar) -> int | None:
    """The extent of an axis if it is constant, otherwise None."""
    extent = axis.dom.extent if axis.dom is not None else None
    return int(extent.value) if isinstance(extent, IntImm) else None


def extent_of(axis: IterVar) -> int:
    """The extent of an axis, assumed if it is dynamic."""
    return assumed(axis.dom.extent) if axis.dom is not None else ASSUMED_SIZE


@dataclass(frozen=True, eq=False)
class Read:
    """One load from a tensor, as a function from the values of the axes to a flat element index.

    For a packed lane, ``together`` is the number of elements that it loads, and the index counts lanes.
    """

    tensor: Tensor
    indices: tuple[PrimExpr, ...]
    axes: tuple[IterVar, ...]
    together: int = 1

    def address(self, values: Mapping[Var, int]) -> int | None:
        """The flat index of the element that is loaded; None if it depends on data."""
        evaluate = _Evaluate(values)
        result = 0
        try:
            for index, extent in zip(self.indices, self.tensor.shape, strict=True):
                result = result * assumed(extent) + int(evaluate.visit(index))
        except _Unknown:
            return None
        return result // self.together

    def stride(self, axis: IterVar) -> int | None:
        """The change of the address per step of the axis; None if it is not constant."""
        found: set[int | None] = set()
        for point in _sample_points(self.axes):
            if extent_of(axis) < 2:
                return 0
            first = min(point[axis.var], extent_of(axis) - 2)
            here = self.address({**point, axis.var: first})
            there = self.address({**point, axis.var: first + 1})
            found.add(None if here is None or there is None else there - here)
        return found.pop() if len(found) == 1 else None

    def moves_with(self, axis: IterVar) -> bool:
        """True if the address depends on the axis."""
        return any(axis.var is part for index in self.indices for part in post_order(index))

    def is_contiguous(self, axis: IterVar, count: int) -> bool:
        """True if ``count`` steps along the axis, aligned to ``count``, load adjacent elements or a single one."""
        return self.steps(axis, count) in (0, 1)

    def steps(self, axis: IterVar, count: int) -> int | None:
        """The stride over ``count`` steps aligned to ``count``. Unlike ``stride``, it ignores the boundaries of layout
        blocks that are at least as large."""
        if not self.moves_with(axis):
            return 0
        extent = extent_of(axis)
        count = min(count, extent)
        if count < 2:
            return 0
        for point in _sample_points(self.axes):
            first = min(point[axis.var], extent - count) // count * count
            start = self.address({**point, axis.var: first})
            second = self.address({**point, axis.var: first + 1})
            last = self.address({**point, axis.var: first + count - 1})
            if (
                start is None
                or second is None
                or last is None
                or last - start != (second - start) * (count - 1)
            ):
                return None
            step = second - start
        return step

    def place_of(self, axis: IterVar) -> int | None:
        """The index that is the axis itself, also if it is written with other axes of extent 1 or a division by 1."""
        for place, index in enumerate(self.indices):
            if index is axis.var:
                return place
            used = {part for part in post_order(index) if isinstance(part, Var)}
            # With an open size in it, an index may be the axis for some sizes only: that of a broadcast tensor is.
            if axis.var not in used or not used <= {one.var for one in self.axes}:
                continue
            try:
                if all(
                    _Evaluate(point).visit(index) == point[axis.var] for point in _sample_points(self.axes)
                ):
                    return place
            except _Unknown:
                continue
        return None

    def overlap(self, axis: IterVar, window: Sequence[IterVar]) -> int:
        """How many further steps of the axis load something that the window over these axes loads now."""
        found = self.window(axis, window)
        return 0 if found is None else max(0, -(-found[1] // found[0]) - 1)

    def window(self, axis: IterVar, window: Sequence[IterVar]) -> tuple[int, int] | None:
        """How far a step of the axis moves along a dimension, and the reach of the window over these axes there; None
        if the axis moves along no dimension."""
        origin = {one.var: 0 for one in self.axes}
        for index in self.indices:
            try:
                first = _Evaluate(origin).visit(index)
                step = int(_Evaluate({**origin, axis.var: 1}).visit(index) - first)
                last = {**origin, **{one.var: extent_of(one) - 1 for one in window}}
                reach = int(_Evaluate(last).visit(index) - first)
            except _Unknown:
                continue
            if step > 0 and any(axis.var is part for part in post_order(index)):
                return step, reach + 1
        return None


def _sample_points(axes: Iterable[IterVar]) -> list[dict[Var, int]]:
    """Three points of the iteration space: its corner, its middle, and an irregular one."""
    extents = [(axis.var, extent_of(axis)) for axis in axes]
    return [
        {var: 0 for var, _ in extents},
        {var: extent // 2 for var, extent in extents},
        {
            var: (5 * number + 3) * extent // 37 % max(extent, 1)
            for number, (var, extent) in enumerate(extents)
        },
    ]


def steady_length(values: Iterable[PrimExpr], axes: Sequence[IterVar], axis: IterVar) -> int:
    """The largest length such that no value changes within so many steps of the axis, aligned to it; the whole extent
    where values depend on data."""
    extent = extent_of(axis)
    changes: set[int] = set()
    try:
        for value in values:
            for point in _sample_points(axes):
                found = [_Evaluate({**point, axis.var: step}).visit(value) for step in range(extent)]
                changes |= {step for step in range(1, extent) if found[step] != found[step - 1]}
    except _Unknown:
        return extent
    return gcd(extent, *changes)


def reads_of(operation: ComputeOp) -> list[Read]:
    """The distinct loads of a computation, including those in indices and conditions."""
    axes = (*operation.axes, *operation.reduce_axis)
    found: dict[tuple[int, ...], Read] = {}
    with recursion_room():
        parts = [part for value in values_of(operation) for part in post_order(value)]
    # The loads that make up a packed lane; the first represents all of them.
    together: dict[int, int] = {}
    for part in parts:
        if isinstance(part, Call) and getattr(part.op, "name", "") == "tir.pack_word" and _is_one_read(part):
            together |= {id(number): 0 for number in part.args}
            together[id(part.args[0])] = len(part.args)
    for part in parts:
        count = together.get(id(part), 1)
        if count and isinstance(part, ProducerLoad) and isinstance(part.producer, Tensor):
            key = (id(part.producer), *(id(index) for index in part.indices))
            found.setdefault(key, Read(part.producer, tuple(part.indices), axes, count))
    return list(found.values())


def _is_one_read(word: Call) -> bool:
    """True if the numbers of a packed lane are loads that differ only in the last index."""
    first = word.args[0]
    return isinstance(first, ProducerLoad) and all(
        isinstance(number, ProducerLoad)
        and number.producer is first.producer
        and all(map(structural_equal, number.indices[:-1], first.indices[:-1]))
        for number in word.args
    )


def values_of(operation: ComputeOp) -> Sequence[PrimExpr]:
    """The expressions that are computed per element; for a reduction, the terms that it combines."""
    first = operation.body[0]
    return (*first.source, first.condition) if isinstance(first, Reduce) else operation.body
