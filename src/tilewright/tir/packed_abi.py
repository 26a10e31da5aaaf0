"""The calling convention of compiled functions, as loop programs see it.

A packed function takes ``(self_handle, args, num_args, result)``: ``args`` points to ``num_args`` tagged values
(``TVMFFIAny``, 16 bytes), a result is written to ``result``, and the function returns 0, or -1 after setting an error.
``tir.tvm_struct_get(handle, index, field)`` reads one field of the ``index``-th structure at ``handle``, and
``tir.tvm_struct_set(handle, index, field, value)`` writes one; the fields are ``StructField``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from tilewright.ir import operators
from tilewright.ir.expr import Call, ExprLike, Load, PrimExpr, StringImm, Var
from tilewright.support.dtype import DataType

TENSOR_OBJECT_HEADER = 24
"""Bytes between a tensor object's address and the DLTensor inside it."""

BYTES_OF_ANY = 16
"""The size of a tagged value."""


class StructField(IntEnum):
    """Fields of DLTensor (up to ``DEVICE_TYPE``) and of TVMFFIAny that programs read and write."""

    ADDRESS = 0
    DATA = 1
    SHAPE = 2
    STRIDES = 3
    NDIM = 4
    TYPE_CODE = 5
    TYPE_BITS = 6
    TYPE_LANES = 7
    BYTE_OFFSET = 8
    DEVICE_ID = 9
    DEVICE_TYPE = 10
    ANY_VALUE = 12
    ANY_TYPE_INDEX = 13
    ANY_FLAGS = 14


FIELD_TYPES = {
    StructField.ADDRESS: DataType("handle"),
    StructField.DATA: DataType("handle"),
    StructField.SHAPE: DataType("handle"),
    StructField.STRIDES: DataType("handle"),
    StructField.NDIM: DataType("int32"),
    StructField.TYPE_CODE: DataType("uint8"),
    StructField.TYPE_BITS: DataType("uint8"),
    StructField.TYPE_LANES: DataType("uint16"),
    StructField.BYTE_OFFSET: DataType("uint64"),
    StructField.DEVICE_ID: DataType("int32"),
    StructField.DEVICE_TYPE: DataType("int32"),
    StructField.ANY_TYPE_INDEX: DataType("int32"),
    StructField.ANY_FLAGS: DataType("uint32"),
}
"""The type of each field; ``ANY_VALUE`` is int64, float64 or handle, as the value's type index says."""


READ_ONLY = 1
"""The flag of a tensor whose memory must not be written; see ``TILEWRIGHT_READ_ONLY`` in tilewright.h."""


class TypeIndex(IntEnum):
    """The type of a tagged value."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    OPAQUE_POINTER = 4
    DATA_TYPE = 5
    DEVICE = 6
    DLTENSOR = 7
    RAW_STRING = 8
    BYTE_ARRAY = 9
    FIRST_OBJECT = 64
    TENSOR = 70


def struct_get(handle: PrimExpr, index: int, field: StructField, dtype: str | None = None) -> Call:
    """Read a field; a type is only needed for ``ANY_VALUE``."""
    return operators.call("tvm_struct_get", dtype or FIELD_TYPES[field], [handle, index, int(field)])


def struct_set(handle: PrimExpr, index: ExprLike, field: StructField, value: ExprLike) -> Call:
    """Write a field; the value must have the field's type already."""
    return operators.call("tvm_struct_set", "int32", [handle, index, int(field), value])


def is_null(handle: PrimExpr) -> Call:
    """True where the pointer is NULL."""
    return operators.call("isnullptr", "bool", [handle])


def address_of(pointer: Var, dtype: str, index: ExprLike) -> Call:
    """A pointer to an element."""
    return operators.call("address_of", "handle", [Load(dtype, pointer, index)])


def message(kind: str, text: str, values: Sequence[ExprLike] = ()) -> PrimExpr:
    """The message of an assertion; ``{0}``, ``{1}`` ... in the text stand for the values at the time it fails."""
    if not values:
        return StringImm(f"{kind}: {text}")
    numbers = [operators.cast("int64", operators.as_expr(value)) for value in values]
    return operators.call("format_message", "handle", [StringImm(f"{kind}: {text}"), *numbers])
