"""Cumulative sums and products, and the unique values of a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, tensor_type
from tilewright.relay.op.definition import Gradient, OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import along_axis
from tilewright.relay.op.shapes import dims, normal_axis, product, tensor
from tilewright.relay.op.transform.slicing import strided_slice
from tilewright.relay.op.transform.support import Array, array_type
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor


@attributes
class ScanopAttrs(OpAttrs):
    """The axis (None for the flattened tensor), the element type of the result, and whether each element itself is
    left out."""

    axis: int | None = None
    dtype: str | None = None
    exclusive: bool = False


def _scan_type(attrs: Any, data: DataType) -> DataType:
    """The element type of the result: without a request that of the data, and int32 of bool."""
    if attrs.dtype:
        return DataType(attrs.dtype)
    return DataType("int32") if data.is_bool else data


def _scan_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of a running sum or product")
    if data is None:
        return None
    kind = _scan_type(attrs, data.dtype)
    if attrs.axis is None:
        return TensorType([product(dims(data))], kind)
    normal_axis(attrs.axis, len(data.shape))
    return TensorType(data.shape, kind)


def _scan(
    name: str,
    compute: Callable[..., Tensor],
    reference: Callable[..., Any],
    identity: int,
    gradient: Gradient | None,
    description: str,
) -> Any:
    def run(attrs: Any, data: Array) -> Array:
        given = data.reshape(-1) if attrs.axis is None else data
        axis = attrs.axis or 0
        kind = (
            array_type(attrs.dtype)
            if attrs.dtype
            else np.dtype("int32")
            if data.dtype.kind == "b"
            else data.dtype
        )
        narrow = kind.kind not in "iub" and kind.itemsize < 4
        made = reference(given, axis=axis, dtype=np.dtype("float32") if narrow else kind).astype(kind)
        if not attrs.exclusive:
            return np.asarray(made)
        first = np.full_like(np.take(made, [0], axis), identity)
        return np.concatenate([first, np.delete(made, -1, axis)], axis)

    return define(
        name,
        arguments=("data",),
        attrs=ScanopAttrs,
        relation=_scan_relation,
        compute=lambda attrs, inputs, out_type: [
            compute(inputs[0], attrs.axis, attrs.dtype, attrs.exclusive)
        ],
        reference=run,
        gradient=gradient,
        layout=along_axis,
        kind=OpPattern.OPAQUE,
        level=10,
        description=description,
    )


def _cumsum_gradient(primal: Any, grad: Any) -> list[Any]:
    """The running sum from the other end."""
    data, attrs = primal.args[0], primal.attrs
    axis = 0 if attrs.axis is None else attrs.axis
    turned = call("reverse", grad, axis=axis)
    summed = call("cumsum", turned, axis=axis, dtype=None, exclusive=attrs.exclusive)
    made = call("reverse", summed, axis=axis)
    if attrs.axis is None and len(tensor_type(data).shape) != 1:
        made = call("reshape_like", made, data)
    return [call("cast_like", made, data)]


_CUMSUM = _scan("cumsum", topi.cumsum, np.cumsum, 0, _cumsum_gradient, "The running sum along an axis.")
_CUMPROD = _scan("cumprod", topi.cumprod, np.cumprod, 1, None, "The running product along an axis.")


def cumsum(
    data: RelayExpr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Call:
    """The running sum along an axis, or of the flattened tensor; ``exclusive`` leaves each element itself out."""
    return Call(_CUMSUM, (data,), ScanopAttrs(axis, dtype, bool(exclusive)))


def cumprod(
    data: RelayExpr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Call:
    """The running product along an axis, or of the flattened tensor; ``exclusive`` leaves each element itself out."""
    return Call(_CUMPROD, (data,), ScanopAttrs(axis, dtype, bool(exclusive)))


@attributes
class UniqueAttrs(OpAttrs):
    """Whether values come in ascending order rather than that of appearance, and whether they are counted."""

    sorted: bool = True
    return_counts: bool = False


def _unique_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of unique")
    if data is None:
        return None
    if len(data.shape) != 1:
        raise RelationError(f"unique takes a vector, not {data}")
    numbers = TensorType(data.shape, "int32")
    fields: list[Type] = [TensorType(data.shape, data.dtype), numbers, numbers, TensorType([1], "int32")]
    return TupleType([*fields, numbers] if attrs.return_counts else fields)


def _unique_reference(attrs: Any, data: Array) -> tuple[Array, ...]:
    values, firsts, numbers, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True
    )
    if not attrs.sorted:
        order = np.argsort(firsts)
        values, firsts, counts = values[order], firsts[order], counts[order]
        numbers = np.argsort(order)[numbers]
    total = len(values)

    def filled(found: Array, kind: Any) -> Array:
        made = np.zeros(data.shape, kind)
        made[:total] = found
        return made

    made = (
        filled(values, data.dtype),
        filled(firsts, "int32"),
        numbers.astype("int32"),
        np.asarray([total], "int32"),
    )
    return (*made, filled(counts, "int32")) if attrs.return_counts else made


_UNIQUE = define(
    "unique",
    arguments=("data",),
    attrs=UniqueAttrs,
    relation=_unique_relation,
    compute=lambda attrs, inputs, out_type: topi.unique(inputs[0], attrs.sorted, attrs.return_counts),
    reference=_unique_reference,
    kind=OpPattern.OPAQUE,
    level=10,
    description="The different values of a vector, in tensors of its length, and how many there are.",
)


def unique(data: RelayExpr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """The different values of a vector, in ascending order or in that of their first appearance.

    Gives the values, where each first appears, for every element the number of its value, how many values there are
    (a vector of one), and on request how often each appears.
    """
    size = 5 if return_counts else 4
    found = TupleWrapper(Call(_UNIQUE, (data,), UniqueAttrs(is_sorted, return_counts)), size)
    total = call("cast", found[3], dtype="int64")

    def cut(field: RelayExpr) -> RelayExpr:
        return strided_slice(field, [0], total, slice_mode="size")

    fields = [cut(found[0]), cut(found[1]), found[2], total]
    if return_counts:
        fields.append(cut(found[4]))
    return TupleWrapper(Tuple(fields), size)
