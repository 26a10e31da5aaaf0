"""Operators that concatenate tensors, and that split one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleGetItem, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is, divides, joined
from tilewright.relay.op.shapes import (
    Dimension,
    combine,
    dims,
    normal_axis,
    require_at_most,
    require_multiple,
    same,
    shape_text,
    tensor,
    tuple_of_tensors,
)
from tilewright.relay.op.transform.layout_rules import convertible, newly
from tilewright.relay.op.transform.support import integers
from tilewright.support.errors import ExpressionError, OpNotImplemented


def as_tuple(data: Any, what: str) -> RelayExpr:
    """A tuple argument: an expression that is one, or its fields."""
    if isinstance(data, TupleWrapper):
        return data.astuple()
    if isinstance(data, RelayExpr):
        return data
    fields = list(data) if isinstance(data, Iterable) else []
    if not fields:
        raise ExpressionError(f"{what} takes a tuple of one tensor or more")
    return Tuple(fields)


def _of_one_type(given: Type, what: str) -> list[TensorType] | None:
    """The fields of a tuple, which have one element type and one rank."""
    fields = tuple_of_tensors(given, f"the argument of {what}")
    if fields is None:
        return None
    if not fields:
        raise RelationError(f"{what} takes one tensor or more")
    for field in fields[1:]:
        if field.dtype is not fields[0].dtype:
            raise RelationError(f"{what}: element types {fields[0].dtype} and {field.dtype} differ")
        if len(field.shape) != len(fields[0].shape):
            raise RelationError(f"{what}: {fields[0]} and {field} differ in rank")
    return fields


@attributes
class ConcatenateAttrs(OpAttrs):
    """The axis along which tensors follow one another."""

    axis: int = 0


def _concatenate_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    fields = _of_one_type(types[0], "concatenate")
    if fields is None:
        return None
    shape = list(dims(fields[0]))
    axis = normal_axis(attrs.axis, len(shape))
    for field in fields[1:]:
        for place, other in enumerate(dims(field)):
            if place == axis:
                shape[place] = combine(lambda a, b: a + b, shape[place], other)
            else:
                shape[place] = same(shape[place], other, f"concatenate: dimension {place}")
    return TensorType(shape, fields[0].dtype)


def _concatenate_gradient(primal: Any, grad: Any) -> list[Any]:
    """The parts of the gradient that belong to the fields."""
    fields = primal.args[0].checked_type.fields
    axis = normal_axis(primal.attrs.axis, len(fields[0].shape))
    ends, end = [], 0
    for field in fields[:-1]:
        extent_here = dims(field)[axis]
        if not isinstance(extent_here, int):
            raise OpNotImplemented(
                f"the gradient of concatenate needs constant sizes along axis {axis}, not {field}"
            )
        end += extent_here
        ends.append(end)
    return [call("split", grad, indices_or_sections=tuple(ends), axis=axis)]


define(
    "concatenate",
    arguments=("data",),
    attrs=ConcatenateAttrs,
    relation=_concatenate_relation,
    compute=lambda attrs, inputs, out_type: [topi.concatenate(inputs, attrs.axis)],
    reference=lambda attrs, data: np.concatenate(data, attrs.axis),
    gradient=_concatenate_gradient,
    layout=joined,
    kind=OpPattern.INJECTIVE,
    level=1,
    description="Tensors one after the other along an axis.",
)


@attributes
class StackAttrs(OpAttrs):
    """The new axis."""

    axis: int = 0


def _stack_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    fields = _of_one_type(types[0], "stack")
    if fields is None:
        return None
    shape = dims(fields[0])
    for field in fields[1:]:
        shape = tuple(
            same(one, other, f"stack: dimension {place}")
            for place, (one, other) in enumerate(zip(shape, dims(field), strict=True))
        )
    axis = normal_axis(attrs.axis, len(shape) + 1)
    return TensorType([*shape[:axis], len(fields), *shape[axis:]], fields[0].dtype)


def _stack_gradient(primal: Any, grad: Any) -> list[Any]:
    axis, count = primal.attrs.axis, len(primal.args[0].checked_type.fields)
    if count == 1:
        return [Tuple([call("squeeze", grad, axis=(axis,))])]
    parts = call("split", grad, indices_or_sections=count, axis=axis)
    return [Tuple([call("squeeze", TupleGetItem(parts, place), axis=(axis,)) for place in range(count)])]


define(
    "stack",
    arguments=("data",),
    attrs=StackAttrs,
    relation=_stack_relation,
    compute=lambda attrs, inputs, out_type: [topi.stack(inputs, attrs.axis)],
    reference=lambda attrs, data: np.stack(data, attrs.axis),
    gradient=_stack_gradient,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    description="Tensors of one shape along a new axis.",
)


@attributes
class SplitAttrs(OpAttrs):
    """How many equal parts, or where the parts after the first begin; and the axis."""

    indices_or_sections: int | tuple[int, ...] = 1
    axis: int = 0

    def check(self) -> None:
        """Sections are at least one."""
        if isinstance(self.indices_or_sections, int) and self.indices_or_sections < 1:
            raise ExpressionError(f"split makes one part or more, not {self.indices_or_sections}")


def _part_sizes(attrs: Any, size: Dimension) -> list[Dimension]:
    parts = attrs.indices_or_sections
    if isinstance(parts, int):
        require_multiple(size, parts, f"split: a dimension of {size} has not {parts} equal parts")
        return [combine(lambda a, b: a // b, size, parts)] * parts
    if list(parts) != sorted(parts) or (parts and parts[0] < 0):
        raise RelationError(f"split: the places {parts} do not rise from zero")
    if parts:
        require_at_most(parts[-1], size, f"split: the places {parts} go beyond a dimension of {size}")
    edges = [0, *parts, size]
    return [combine(lambda a, b: b - a, first, second) for first, second in pairwise(edges)]


def _split_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of split")
    if data is None:
        return None
    shape = dims(data)
    axis = normal_axis(attrs.axis, len(shape))
    return TupleType(
        [
            TensorType([*shape[:axis], size, *shape[axis + 1 :]], data.dtype)
            for size in _part_sizes(attrs, shape[axis])
        ]
    )


def _split_layout(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The axis is looked up by its letter; where it is split into parts, the places are divided by their size."""
    old, new = original[0], newly(offered)
    parts = attrs.indices_or_sections
    count = parts if isinstance(parts, int) else len(parts) + 1
    kept = Layouts((old,), (old,) * count, attrs)
    if old is None or new is None or not convertible(new, old):
        return kept
    axis = normal_axis(attrs.axis, len(old))
    factor = max(new.factor_of(old[axis]), 1)
    if factor > 1:
        size = dims(types[0])[axis]
        if not divides(size, factor * (parts if isinstance(parts, int) else 1)):
            return kept
        if not isinstance(parts, int):
            if any(place % factor for place in parts):
                return kept
            parts = tuple(place // factor for place in parts)
    return Layouts((new,), (new,) * count, SplitAttrs(parts, new.index_of(old[axis])))


def _split_reference(attrs: Any, data: Any) -> Any:
    parts = attrs.indices_or_sections
    return tuple(np.split(data, parts if isinstance(parts, int) else list(parts), attrs.axis))


_SPLIT = define(
    "split",
    arguments=("data",),
    attrs=SplitAttrs,
    relation=_split_relation,
    compute=lambda attrs, inputs, out_type: topi.split(inputs[0], attrs.indices_or_sections, attrs.axis),
    reference=_split_reference,
    gradient=lambda primal, grad: [call("concatenate", grad, axis=primal.attrs.axis)],
    layout=_split_layout,
    kind=OpPattern.INJECTIVE,
    description="The parts of a tensor along an axis.",
)


def split(data: RelayExpr, indices_or_sections: Any, axis: int = 0) -> TupleWrapper:
    """The parts of a tensor along an axis: so many equal ones, or those that begin at 0 and at the given places."""
    if isinstance(indices_or_sections, (list, tuple)):
        parts: Any = integers(indices_or_sections, "split")
        count = len(parts) + 1
    else:
        parts = count = integers(indices_or_sections, "split")[0]
    return TupleWrapper(Call(_SPLIT, (data,), SplitAttrs(parts, axis)), count)


@attributes
class MeshgridAttrs(OpAttrs):
    """ "ij" for matrix order, "xy" to exchange the first two axes."""

    indexing: str = "ij"

    def check(self) -> None:
        """One of the two orders."""
        if self.indexing not in ("ij", "xy"):
            raise ExpressionError(f"meshgrid: indexing is 'ij' or 'xy', not {self.indexing!r}")


def _meshgrid_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    fields = tuple_of_tensors(types[0], "the argument of meshgrid")
    if fields is None:
        return None
    shape: list[Dimension] = []
    for field in fields:
        if len(field.shape) > 1:
            raise RelationError(f"meshgrid takes vectors and scalars, not {shape_text(dims(field))}")
        if field.dtype is not fields[0].dtype:
            raise RelationError(f"meshgrid: element types {fields[0].dtype} and {field.dtype} differ")
        shape.append(dims(field)[0] if field.shape else 1)
    if attrs.indexing == "xy" and len(shape) >= 2:
        shape[0], shape[1] = shape[1], shape[0]
    return TupleType([TensorType(shape, field.dtype) for field in fields])


_MESHGRID = define(
    "meshgrid",
    arguments=("data",),
    attrs=MeshgridAttrs,
    relation=_meshgrid_relation,
    compute=lambda attrs, inputs, out_type: topi.meshgrid(inputs, attrs.indexing),
    reference=lambda attrs, data: tuple(np.meshgrid(*data, indexing=attrs.indexing)),
    kind=OpPattern.INJECTIVE,
    description="Coordinate tensors from coordinate vectors.",
)


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    """Coordinate tensors from coordinate vectors: one for each, in the shape of all."""
    fields = as_tuple(data, "meshgrid")
    if isinstance(fields, Tuple):
        count = len(fields)
    elif isinstance(data, TupleWrapper):
        count = data.size
    else:
        count = len(fields.checked_type.fields)
    return TupleWrapper(Call(_MESHGRID, (fields,), MeshgridAttrs(indexing)), count)
