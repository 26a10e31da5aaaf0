"""Sorting, and searching in sorted data.

Sorting is stable. NaN counts as greater than every number: it comes last in ascending order, and first in descending
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Constant, TupleWrapper
from tilewright.relay.op import layout_rules
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import Dimension, dims, normal_axis, require_at_most, same, tensor, tensors
from tilewright.relay.op.tensor.reference import Array
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor

__all__ = ["argsort", "searchsorted", "sort", "topk"]


@attributes
class ArgsortAttrs(OpAttrs):
    """The axis, the direction, and the type of positions."""

    axis: int = -1
    is_ascend: bool = True
    dtype: str = "int32"


@attributes
class TopKAttrs(OpAttrs):
    """How many (all, if less than one), along which axis, and what is given: "both", "values" or "indices"."""

    k: int = 1
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str = "int32"

    def check(self) -> None:
        """``ret_type`` has one of three values."""
        if self.ret_type not in ("both", "values", "indices"):
            raise OpAttributeInvalid(f"topk gives 'both', 'values' or 'indices', not {self.ret_type!r}")


@attributes
class SearchSortedAttrs(OpAttrs):
    """Behind equal elements or before them, and the type of positions."""

    right: bool = False
    dtype: str = "int32"


def _sorted_type(types: Sequence[Type], attrs: Any) -> TensorType | None:
    found = tensor(types[0], "the argument")
    if found is not None:
        normal_axis(attrs.axis, len(dims(found)))
    return found


def _positions_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = _sorted_type(types, attrs)
    return found and TensorType(found.shape, attrs.dtype)


def _positions(data: Array, axis: int, ascending: bool) -> Array:
    """The positions of the elements in order; of equal elements the earlier come first, in both directions."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return np.asarray(data.shape[axis] - 1 - np.flip(backwards, axis))


_SORT = define(
    "sort",
    arguments=("data",),
    attrs=ArgsortAttrs,
    relation=_sorted_type,
    compute=lambda attrs, inputs, out_type: [topi.sort(inputs[0], attrs.axis, attrs.is_ascend)],
    reference=lambda attrs, data: np.take_along_axis(
        data, _positions(data, attrs.axis, bool(attrs.is_ascend)), attrs.axis
    ),
    layout=layout_rules.along_axis,
    kind=OpPattern.OPAQUE,
    level=6,
    description="The elements in order along an axis.",
)

_ARGSORT = define(
    "argsort",
    arguments=("data",),
    attrs=ArgsortAttrs,
    relation=_positions_type,
    compute=lambda attrs, inputs, out_type: [
        topi.argsort(inputs[0], axis=attrs.axis, is_ascend=attrs.is_ascend, dtype=attrs.dtype)
    ],
    reference=lambda attrs, data: _positions(data, attrs.axis, bool(attrs.is_ascend)).astype(
        numpy_dtype(DataType(attrs.dtype))
    ),
    layout=layout_rules.along_axis,
    kind=OpPattern.OPAQUE,
    level=6,
    description="The positions of the elements in order along an axis.",
)


def sort(data: RelayExpr, axis: int = -1, is_ascend: bool | int = 1) -> Call:
    """The elements in order along an axis."""
    return Call(_SORT, (data,), ArgsortAttrs(axis, bool(is_ascend)))


def argsort(data: RelayExpr, axis: int = -1, is_ascend: bool | int = 1, dtype: str = "int32") -> Call:
    """The positions of the elements in order along an axis; equal elements keep their order."""
    return Call(_ARGSORT, (data,), ArgsortAttrs(axis, bool(is_ascend), dtype))


def _first_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the argument")
    if found is None:
        return None
    shape: list[Dimension] = list(dims(found))
    axis = normal_axis(attrs.axis, len(shape))
    extent = shape[axis]
    if attrs.k >= 1:
        elements = f"only {extent} elements" if isinstance(extent, int) else "an axis with fewer elements"
        require_at_most(attrs.k, extent, f"the first {attrs.k} of {elements} are requested")
        shape[axis] = attrs.k
    values, positions = TensorType(shape, found.dtype), TensorType(shape, attrs.dtype)
    if attrs.ret_type == "both":
        return TupleType((values, positions))
    return values if attrs.ret_type == "values" else positions


def _first_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    made = topi.topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _first_reference(attrs: TopKAttrs, data: Array) -> Any:
    count = attrs.k if attrs.k >= 1 else data.shape[attrs.axis]
    found = _positions(data, attrs.axis, attrs.is_ascend)
    found = np.take(found, np.arange(count), axis=attrs.axis)
    values = np.take_along_axis(data, found, attrs.axis)
    positions = found.astype(numpy_dtype(DataType(attrs.dtype)))
    if attrs.ret_type == "both":
        return values, positions
    return values if attrs.ret_type == "values" else positions


def _first_layout(attrs: TopKAttrs, offered: Any, original: Any, types: Any) -> layout_rules.Layouts:
    made = layout_rules.along_axis(attrs, offered, original, types)
    outputs = made.outputs * (2 if attrs.ret_type == "both" else 1)
    return layout_rules.Layouts(made.inputs, outputs, made.attrs)


_TOPK = define(
    "topk",
    arguments=("data",),
    attrs=TopKAttrs,
    relation=_first_type,
    compute=_first_compute,
    reference=_first_reference,
    layout=_first_layout,
    kind=OpPattern.OPAQUE,
    level=6,
    description="The first k elements in order along an axis, their positions, or both.",
)


def topk(
    data: RelayExpr,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> Call | TupleWrapper:
    """The first ``k`` elements in order along an axis, their positions, or both; the greatest come first, or with
    ``is_ascend`` the least. A ``k`` below one means all; the program may compute it."""
    if isinstance(k, Constant):
        k = k.data.numpy().item()
    settings = {"axis": axis, "ret_type": ret_type, "is_ascend": bool(is_ascend), "dtype": dtype}
    if isinstance(k, RelayExpr):
        made = call("dyn.topk", data, k, **settings)
    else:
        made = Call(_TOPK, (data,), TopKAttrs.from_mapping({"k": k, **settings}, "topk"))
    return TupleWrapper(made, 2) if ret_type == "both" else made


def _search_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the sorted sequence", "the values")
    if found is None:
        return None
    sequence, values = found
    if sequence.dtype is not values.dtype:
        raise RelationError(f"values of {values.dtype} are searched in a sequence of {sequence.dtype}")
    shape, wanted = dims(sequence), dims(values)
    if not shape:
        raise RelationError("the sorted sequence has one dimension or more")
    if len(shape) > 1:
        if len(shape) != len(wanted):
            raise RelationError(
                f"the sequences have {len(shape)} dimensions and the values {len(wanted)}; they need as many"
            )
        for axis, (one, other) in enumerate(zip(shape[:-1], wanted[:-1], strict=True)):
            same(one, other, f"dimension {axis} of sequences and values")
    return TensorType(wanted, attrs.dtype)


def _search_reference(attrs: SearchSortedAttrs, sequence: Array, values: Array) -> Array:
    side: Any = "right" if attrs.right else "left"
    if sequence.ndim == 1:
        found = np.searchsorted(sequence, values, side=side)
    else:
        rows = sequence.reshape(-1, sequence.shape[-1])
        wanted = values.reshape(-1, values.shape[-1])
        pairs = zip(rows, wanted, strict=True)
        found = np.asarray([np.searchsorted(row, each, side=side) for row, each in pairs])
    return np.asarray(found).reshape(values.shape).astype(numpy_dtype(DataType(attrs.dtype)))


_SEARCHSORTED = define(
    "searchsorted",
    arguments=("sorted_sequence", "values"),
    attrs=SearchSortedAttrs,
    relation=_search_type,
    compute=lambda attrs, inputs, out_type: [
        topi.searchsorted(inputs[0], inputs[1], attrs.right, attrs.dtype)
    ],
    reference=_search_reference,
    kind=OpPattern.OPAQUE,
    level=6,
    description="Where values belong in sorted sequences.",
)


def searchsorted(
    sorted_sequence: RelayExpr, values: RelayExpr, right: bool = False, dtype: str = "int32"
) -> Call:
    """Where each value would keep its sequence sorted: before equal elements, or behind them (``right``). A sequence of
    one dimension serves for all values; otherwise the last axis of both is searched, and the others are the same."""
    return Call(_SEARCHSORTED, (sorted_sequence, values), SearchSortedAttrs(bool(right), dtype))
