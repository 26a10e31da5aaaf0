"""DLPack capsules: the exchange of tensors between Python libraries, without copies.

A capsule named ``dltensor`` (or ``dltensor_versioned``) owns its tensor until somebody consumes it and renames it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_void_p, py_object
from typing import Any

from tilewright.runtime.device import Device
from tilewright.runtime.device_table import shares_streams
from tilewright.runtime.failure import failure, take_failure
from tilewright.runtime.library import LIBRARY, QUICK

_NAME = b"dltensor"
_USED_NAME = b"used_dltensor"
_VERSIONED_NAME = b"dltensor_versioned"
_USED_VERSIONED_NAME = b"used_dltensor_versioned"

# The DLTensor sits at the start of a managed tensor, and after version, context, deleter and flags of a versioned one.
_VERSIONED_OFFSET = 32
_FLAGS_OFFSET = 24
_READ_ONLY = 1


def _python_api(name: str, result: object, *arguments: object) -> Callable[..., Any]:
    """A function of CPython's C interface, as a private object: ``ctypes.pythonapi`` is shared by all libraries."""
    prototype: Any = ctypes.PYFUNCTYPE
    made: Callable[..., Any] = prototype(result, *arguments)((name, ctypes.pythonapi))
    return made


_capsule_new = _python_api("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
_capsule_pointer = _python_api("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_capsule_is_valid = _python_api("PyCapsule_IsValid", c_int, py_object, c_char_p)
_capsule_set_name = _python_api("PyCapsule_SetName", c_int, py_object, c_char_p)
_destructor = LIBRARY.tilewright_capsule_destructor(
    ctypes.cast(ctypes.pythonapi.PyCapsule_IsValid, c_void_p),
    ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, c_void_p),
)


def is_capsule(value: object) -> bool:
    """True for a DLPack capsule that has not been consumed."""
    return bool(_capsule_is_valid(value, _NAME) or _capsule_is_valid(value, _VERSIONED_NAME))


def export_capsule(handle: int, versioned: bool, read_only: bool = False) -> object:
    """A capsule that shares the memory of a tensor object and keeps it alive.

    Only a versioned capsule can say that the memory is read-only.
    """
    if read_only and not versioned:
        raise failure(
            "BufferError",
            "a read-only array can be lent only through DLPack 1.0 or later, which the receiver does not support",
        )
    make = QUICK.tilewright_tensor_to_dlpack_versioned if versioned else QUICK.tilewright_tensor_to_dlpack
    address = make(handle)
    if not address:
        raise take_failure()
    if read_only:
        ctypes.c_uint64.from_address(address + _FLAGS_OFFSET).value |= _READ_ONLY
    return _capsule_new(address, _VERSIONED_NAME if versioned else _NAME, _destructor)


def is_read_only(capsule: object) -> bool:
    """True if a capsule says that its memory must not be written."""
    if not _capsule_is_valid(capsule, _VERSIONED_NAME):
        return False
    address = int(_capsule_pointer(capsule, _VERSIONED_NAME))
    return bool(ctypes.c_uint64.from_address(address + _FLAGS_OFFSET).value & _READ_ONLY)


def consume_capsule(capsule: object) -> int:
    """Takes the tensor out of a capsule; returns a new tensor object, which owns it."""
    handle = c_void_p()
    if _capsule_is_valid(capsule, _VERSIONED_NAME):
        address = _capsule_pointer(capsule, _VERSIONED_NAME)
        status = LIBRARY.tilewright_tensor_from_dlpack_versioned(address, ctypes.byref(handle))
        used = _USED_VERSIONED_NAME
    elif _capsule_is_valid(capsule, _NAME):
        address = _capsule_pointer(capsule, _NAME)
        status = LIBRARY.tilewright_tensor_from_dlpack(address, ctypes.byref(handle))
        used = _USED_NAME
    else:
        raise failure("ValueError", "expected a DLPack capsule that has not been consumed yet")
    if status != 0:
        raise take_failure()
    _capsule_set_name(capsule, used)
    return handle.value or 0


def request_capsule(producer: Any) -> object:
    """Requests a capsule from an object: a versioned one if it can, so that read-only memory may be lent too. Work
    that its library has queued finishes before later work on our stream of the device."""
    stream = _stream_for(producer)
    try:
        try:
            return producer.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:  # a producer from before DLPack 1.0
            return producer.__dlpack__(**stream)
    except BufferError as error:
        raise failure(
            "BufferError", f"a {type(producer).__name__} cannot be used without a copy: {error}"
        ) from error


def _stream_for(producer: Any) -> dict[str, int]:
    """The stream argument for a producer, on which its memory will be read; none where memory has no streams."""
    place = getattr(producer, "__dlpack_device__", None)
    if place is None:
        return {}
    device_type, device_id = place()
    device = Device(int(device_type), int(device_id))
    return {"stream": device.raw_stream} if shares_streams(int(device_type)) and device.exist else {}


def unversioned_tensor(capsule: object) -> int:
    """The address of the DLTensor in an unversioned capsule, valid as long as the capsule is."""
    return int(_capsule_pointer(capsule, _NAME))


def borrowed_tensor(capsule: object) -> int:
    """The address of the DLTensor in a capsule, valid as long as the capsule is."""
    if _capsule_is_valid(capsule, _VERSIONED_NAME):
        return int(_capsule_pointer(capsule, _VERSIONED_NAME)) + _VERSIONED_OFFSET
    return unversioned_tensor(capsule)
