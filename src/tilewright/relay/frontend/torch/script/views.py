"""Writing through a view: the tensor that a view looks at, with new elements where the view is.

Where the elements of a view lie is found by computing the view of a tensor that holds its own positions. Views are
regular, so mostly each axis of the view runs along one axis of the tensor, with a stride: that is a strided write.
Any other view is a scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, Let, Var, const
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.script.values import InPlaceError
from tilewright.relay.infer import type_of
from tilewright.relay.interpreter import Interpreter

LARGEST_KNOWN = 1 << 25
"""Elements of a tensor up to which the positions of a view are computed at import."""

Positions = np.ndarray[Any, Any]


def written_through(
    scope: Scope, view: Callable[[RelayExpr], RelayExpr], target: RelayExpr, value: RelayExpr
) -> RelayExpr:
    """``target`` with the elements that ``view`` shows replaced by those of ``value``, which has the view's type."""
    kind = type_of(target, scope.module)
    assert isinstance(kind, TensorType)
    shape = tuple(extent.value if isinstance(extent, IntImm) else None for extent in kind.shape)
    if None in shape:
        sizes = relay.shape_of(target, "int64")
        count = relay.prod(sizes)
        numbers = relay.arange(const(0, "int64"), count, const(1, "int64"), "int64")
        return _scattered(
            scope, target, value, view(with_type(relay.reshape(numbers, sizes), shape, "int64")), kind
        )
    known = tuple(extent for extent in shape if extent is not None)
    own = np.arange(prod(known), dtype="int64").reshape(known)
    seen = view(Constant(own))
    if own.size > LARGEST_KNOWN or relay.analysis.free_vars(seen):
        return _scattered(scope, target, value, seen, kind)
    return placed(target, known, value, np.asarray(Interpreter(scope.module).run(seen)))


def _scattered(
    scope: Scope, target: RelayExpr, value: RelayExpr, positions: RelayExpr, kind: TensorType
) -> RelayExpr:
    """The elements at positions that only the program knows replaced."""
    one, other, new = (relay.reshape(each, (-1,)) for each in (target, positions, value))
    flat = relay.scatter(one, other, new, 0)
    shape = tuple(extent.value if isinstance(extent, IntImm) else None for extent in kind.shape)
    known = [extent for extent in shape if extent is not None]
    if len(known) == len(shape):
        return relay.reshape(flat, known)
    return with_type(relay.reshape(flat, relay.shape_of(target, "int64")), shape, str(kind.dtype))


def with_type(data: RelayExpr, shape: Sequence[int | None], dtype: str) -> RelayExpr:
    """A tensor under a type that says which dimensions are known."""
    variable = Var("shaped", TensorType([UnknownDimension() if one is None else one for one in shape], dtype))
    return Let(variable, data, variable)


def placed(target: RelayExpr, shape: tuple[int, ...], value: RelayExpr, positions: Positions) -> RelayExpr:
    """``target`` with the elements at ``positions`` (in row-major order) replaced by those of ``value``."""
    count = prod(shape)
    if positions.size == 0:
        return target
    if positions.size == count and np.array_equal(positions.reshape(-1), np.arange(count)):
        return value if positions.shape == shape else relay.reshape(value, shape)
    box = _box(shape, positions)
    if box is not None:
        return _set_box(target, shape, value, positions.shape, *box)
    flat = positions.reshape(-1)
    if len(np.unique(flat)) < len(flat):
        raise InPlaceError(
            "a write in place to a tensor that shows elements several times (expand) is not supported: use clone"
        )
    written = relay.scatter(
        relay.reshape(target, (count,)), const(flat), relay.reshape(value, (positions.size,)), 0
    )
    return relay.reshape(written, shape)


def _box(shape: tuple[int, ...], positions: Positions) -> tuple[list[int], list[int], list[int]] | None:
    """For a view whose axes each run along an axis of the tensor: the first index and the stride for each axis of the
    tensor, and for each axis of the view that of the tensor (-1 for axes of one element); None for other views."""
    first = np.unravel_index(int(positions.reshape(-1)[0]), shape)
    strides = [1] * len(shape)
    along: list[int] = []
    for axis, extent in enumerate(positions.shape):
        if extent == 1:
            along.append(-1)
            continue
        second = [0] * positions.ndim
        second[axis] = 1
        steps = np.subtract(np.unravel_index(int(positions[tuple(second)]), shape), first)
        moved = np.flatnonzero(steps)
        if len(moved) != 1 or int(moved[0]) in along or steps[moved[0]] < 0:
            return None
        along.append(int(moved[0]))
        strides[int(moved[0])] = int(steps[moved[0]])
    # What the description says has to be all of the view.
    expected = np.zeros(positions.shape, "int64")
    weights = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    for axis, target_axis in enumerate(along):
        if target_axis >= 0:
            steps = np.arange(positions.shape[axis]) * strides[target_axis] * weights[target_axis]
            expected += steps.reshape([-1 if place == axis else 1 for place in range(positions.ndim)])
    expected += int(positions.reshape(-1)[0])
    return ([int(index) for index in first], strides, along) if np.array_equal(expected, positions) else None


def _set_box(
    target: RelayExpr,
    shape: tuple[int, ...],
    value: RelayExpr,
    extents: tuple[int, ...],
    first: list[int],
    strides: list[int],
    along: list[int],
) -> RelayExpr:
    # The axes of the value in the order of the tensor's, with axes of one element where the view has none.
    order = sorted((axis for axis, place in enumerate(along) if place >= 0), key=lambda axis: along[axis])
    ones = [axis for axis, place in enumerate(along) if place < 0]
    if order + ones != list(range(len(extents))):
        value = relay.transpose(value, order + ones)
    sizes = [1] * len(shape)
    for axis in order:
        sizes[along[axis]] = extents[axis]
    value = relay.reshape(value, sizes)
    whole = [place for place, size in enumerate(sizes) if size != shape[place]]
    if not whole:
        return value
    if len(whole) == 1 and strides[whole[0]] == 1:
        return _joined(target, shape, value, whole[0], first[whole[0]], sizes[whole[0]])
    last = [
        begin + (size - 1) * stride + 1 for begin, size, stride in zip(first, sizes, strides, strict=True)
    ]
    return relay.strided_set(target, value, first, last, strides)


def _joined(
    target: RelayExpr, shape: tuple[int, ...], value: RelayExpr, axis: int, begin: int, size: int
) -> RelayExpr:
    """A part along one axis is replaced by joining what is before it, the new one, and what is after it."""
    parts: list[RelayExpr] = []
    if begin:
        parts.append(relay.strided_slice(target, [0], [begin], [1], axes=[axis]))
    parts.append(value)
    if begin + size < shape[axis]:
        parts.append(relay.strided_slice(target, [begin + size], [shape[axis]], [1], axes=[axis]))
    return relay.concatenate(parts, axis)
