"""The C runtime's table of devices: which have a driver, whose memory the host can read, and their attributes."""

from __future__ import annotations

import ctypes
from enum import IntEnum

from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY, QUICK, DLDevice

# From tilewright.h: types of values, and flags of devices.
_NONE, _INT = 0, 1
_HOST_READS, _ASYNCHRONOUS, _SHARES_STREAMS = 1, 2, 8
_MOST_TYPES = 128


class _TableHead(ctypes.Structure):
    """The start of a driver's table."""

    _fields_ = (("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("name", ctypes.c_char_p))


class Attribute(IntEnum):
    """The attributes of a device; ``tilewright.h`` has their units."""

    EXISTS = 0
    MAX_THREADS_PER_BLOCK = 1
    WARP_SIZE = 2
    MAX_SHARED_MEMORY_PER_BLOCK = 3
    COMPUTE_VERSION = 4
    DEVICE_NAME = 5
    MAX_CLOCK_RATE = 6
    MULTI_PROCESSOR_COUNT = 7
    MAX_THREAD_DIMENSIONS = 8
    MAX_REGISTERS_PER_BLOCK = 9
    API_VERSION = 11
    DRIVER_VERSION = 12
    TOTAL_MEMORY = 13
    FREE_MEMORY = 14
    L2_BYTES = 15
    MAX_DYNAMIC_SHARED_MEMORY = 16
    SHARED_MEMORY_PER_MULTI_PROCESSOR = 17
    REGISTERS_PER_MULTI_PROCESSOR = 18
    THREADS_PER_MULTI_PROCESSOR = 19
    BLOCKS_PER_MULTI_PROCESSOR = 20
    MEMORY_CLOCK_RATE = 21
    MEMORY_BUS_BITS = 22


def read_attribute(device: DLDevice, attribute: Attribute) -> int | str | None:
    """A number, a text, or None where the driver does not know. Without a driver, only existence is known."""
    words = (ctypes.c_int64 * 2)()
    check(LIBRARY.tilewright_device_attribute(device, attribute, words))
    if words[0] == _NONE:
        return None
    if words[0] == _INT:
        return int(words[1])
    try:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(QUICK.tilewright_get_bytes(words, ctypes.byref(data), ctypes.byref(size)))
        return ctypes.string_at(data.value or 0, size.value).decode(errors="replace")
    finally:
        QUICK.tilewright_any_release(words)


def has_driver(device_type: int) -> bool:
    """True if the runtime has a driver for a kind of device."""
    return QUICK.tilewright_device_table(device_type) is not None


def host_readable(device_type: int) -> bool:
    """True if code of the host may read and write the memory of a kind of device at any time."""
    flags = QUICK.tilewright_device_flags(device_type)
    return bool(flags & _HOST_READS and not flags & _ASYNCHRONOUS)


def asynchronous(device_type: int) -> bool:
    """True if a kind of device runs kernels asynchronously."""
    return bool(QUICK.tilewright_device_flags(device_type) & _ASYNCHRONOUS)


def shares_streams(device_type: int) -> bool:
    """True if a kind of device shares its streams with other libraries, and they can wait for each other."""
    return bool(QUICK.tilewright_device_flags(device_type) & _SHARES_STREAMS)


def driver_name(device_type: int) -> str | None:
    """The driver's name for a kind of device; None if there is no driver."""
    table = QUICK.tilewright_device_table(device_type)
    if table is None:
        return None
    return (_TableHead.from_address(table).name or b"").decode(errors="replace")


def find_driver(name: str) -> int | None:
    """The kind of device whose driver has this name."""
    return next((number for number in range(_MOST_TYPES) if driver_name(number) == name), None)
