"""Values of the virtual machine that are not tensors: tuples and values of algebraic data types, references.

They live in the C runtime. Fields become Python values when they are read, so that a list of a million elements
costs nothing until somebody walks it.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_int64, c_void_p
from typing import Any, Self

from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY, QUICK
from tilewright.runtime.packed_func import decode_owned, pack_arguments, register_object_type
from tilewright.runtime.reference import HoldsReference
from tilewright.support.node import Object

_DATA, _REFERENCE = 0x54570001, 0x54570002
_TWO_WORDS = c_int64 * 2

String = str


class _OwnsObject(HoldsReference):
    """Owns a reference to an object of the C runtime."""

    __slots__ = ("__weakref__", "_handle")

    _handle: int

    @classmethod
    def _from_handle(cls, handle: int) -> Self:
        made = cls.__new__(cls)
        made._handle = handle
        return made

    def __del__(self) -> None:
        if QUICK is not None and getattr(self, "_handle", None):
            QUICK.tilewright_object_release(self._handle)


class ADT(_OwnsObject, Object):
    """A value with a tag and fields; a tuple has the tag 0."""

    __slots__ = ()

    def __init__(self, tag: int, fields: Sequence[Any]) -> None:
        packed, kept = pack_arguments(tuple(fields))
        handle = c_void_p()
        check(LIBRARY.tilewright_data_create(tag, packed, len(fields), ctypes.byref(handle)))
        kept.clear()  # and not before: the fields live here
        self._handle = handle.value or 0

    def __reduce__(self) -> tuple[type[ADT], tuple[int, list[Any]]]:
        return ADT, (self.tag, list(self))

    @property
    def tag(self) -> int:
        """Which constructor made the value."""
        return int(QUICK.tilewright_data_tag(self._handle))

    def __len__(self) -> int:
        return int(QUICK.tilewright_data_size(self._handle))

    def __getitem__(self, index: int | slice) -> Any:
        size = len(self)
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(size))]
        if not -size <= index < size:
            raise failure("IndexError", f"the value has {size} fields; there is no field {index}")
        words = _TWO_WORDS()
        check(QUICK.tilewright_data_field(self._handle, index % size, words))
        return decode_owned(words)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"ADT(tag={self.tag}, {len(self)} fields)"


class ShapeTuple(tuple[int, ...], Object):
    """The extents of a tensor."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int]) -> ShapeTuple:
        return super().__new__(cls, [operator.index(extent) for extent in shape])


class Reference(_OwnsObject):
    """A place that holds a value."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        packed, kept = pack_arguments((value,))
        handle = c_void_p()
        check(LIBRARY.tilewright_reference_create(packed, ctypes.byref(handle)))
        kept.clear()
        self._handle = handle.value or 0

    @property
    def value(self) -> Any:
        """What it holds now."""
        words = _TWO_WORDS()
        QUICK.tilewright_reference_read(self._handle, words)
        return decode_owned(words)


def tuple_object(fields: Sequence[Any] | None = None) -> ADT:
    """A tuple."""
    return ADT(0, tuple(fields or ()))


register_object_type(_DATA, ADT, ADT._from_handle, lambda value: value._handle)
register_object_type(_REFERENCE, Reference, Reference._from_handle, lambda value: value._handle)
