"""Explicit allocation: memory (``Storage``), tensors within it, and their deallocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import STORAGE as STORAGE_NAME
from tilewright.ir.type import TupleType, Type, TypeCall
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.relations import nothing
from tilewright.runtime.device import Device
from tilewright.support.errors import ExpressionError

STORAGE = TypeCall(STORAGE_NAME, ())
"""The type of memory."""


@attributes
class AllocStorageAttrs(OpAttrs):
    """Where the memory lies, and the type of the elements that it is meant for."""

    dtype: str = "float32"
    device_id: int = 0
    device_type: int = 1


@attributes
class AllocTensorAttrs(OpAttrs):
    """The shape where it is known, as a constant or as dimensions (``assert_shape``), and the element type."""

    const_shape: Constant | None = None
    assert_shape: Any = None
    dtype: str = "float32"


def _storage_type(types: Sequence[Type], attrs: Any) -> Type | None:
    return STORAGE


def _allocated_type(types: Sequence[Type], attrs: Any) -> Type | None:
    if attrs.assert_shape is not None:
        return TensorType(attrs.assert_shape, attrs.dtype)
    if attrs.const_shape is not None:
        return TensorType(attrs.const_shape.data.numpy().reshape(-1).tolist(), attrs.dtype)
    raise RelationError(
        "the shape of a tensor that the program computes has to be asserted, its rank at least"
    )


_ALLOC_STORAGE = define(
    "memory.alloc_storage",
    arguments=("size", "alignment"),
    attrs=AllocStorageAttrs,
    relation=_storage_type,
    reference=None,
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=10,
    description="Memory of a size in bytes, aligned to a number of bytes.",
)
_ALLOC_TENSOR = define(
    "memory.alloc_tensor",
    arguments=("storage", "offset", "shape"),
    attrs=AllocTensorAttrs,
    relation=_allocated_type,
    reference=None,
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=10,
    description="A tensor in memory, from an offset on.",
)
define(
    "memory.kill",
    arguments=("tensor",),
    relation=nothing,
    reference=None,
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=10,
    description="Ends the life of a tensor.",
)


def alloc_tensor(
    storage: RelayExpr,
    offset: RelayExpr,
    shape: Any,
    dtype: str = "float32",
    assert_shape: Sequence[Any] | None = None,
) -> Call:
    """A tensor in memory, from an offset on. Where the shape is computed by the program, ``assert_shape`` is what is
    known of it."""
    if isinstance(shape, (list, tuple)):
        shape = const(list(shape), "int64")
    constant = shape if isinstance(shape, Constant) else None
    asserted = None if assert_shape is None else tuple(assert_shape)
    return Call(_ALLOC_TENSOR, (storage, offset, shape), AllocTensorAttrs(constant, asserted, dtype))


def alloc_storage(size: RelayExpr, alignment: RelayExpr, device: Device, dtype_hint: str = "float32") -> Call:
    """Memory of a size in bytes on a device."""
    attrs = AllocStorageAttrs(dtype_hint, device.device_id, device.device_type)
    return Call(_ALLOC_STORAGE, (size, alignment), attrs)


def flatten_tuple_type(ty: Type) -> list[TensorType]:
    """The tensor types within a type, in order."""
    found: list[TensorType] = []
    pending = [ty]
    while pending:
        current = pending.pop()
        if isinstance(current, TensorType):
            found.append(current)
        elif isinstance(current, TupleType):
            pending.extend(reversed(current.fields))
        else:
            raise ExpressionError(f"a value of tensors and tuples is needed, not one of type {current}")
    return found


def from_tuple_type(ty: Type, expr: RelayExpr) -> list[RelayExpr]:
    """Expressions for the tensors within a value of this type, in order."""
    found: list[RelayExpr] = []
    pending = [(ty, expr)]
    while pending:
        current, value = pending.pop()
        if isinstance(current, TensorType):
            found.append(value)
        elif isinstance(current, TupleType):
            parts = [(field, TupleGetItem(value, place)) for place, field in enumerate(current.fields)]
            pending.extend(reversed(parts))
        else:
            raise ExpressionError(f"a value of tensors and tuples is needed, not one of type {current}")
    return found


def to_tuple_type(ty: Type, exprs: Sequence[RelayExpr]) -> RelayExpr:
    """The value of this type that is made of tensors, given in order."""
    given = list(exprs)
    if len(given) != len(flatten_tuple_type(ty)):
        raise ExpressionError(f"{len(flatten_tuple_type(ty))} tensors are in {ty}, {len(given)} were given")
    return _packed(ty, iter(given))


def _packed(ty: Type, given: Any) -> RelayExpr:
    if isinstance(ty, TupleType):
        return Tuple([_packed(field, given) for field in ty.fields])
    value: RelayExpr = next(given)
    return value
