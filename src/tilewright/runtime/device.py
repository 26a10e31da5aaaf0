"""Devices: a kind, under DLPack's number for it, and an index.

What a device can do is read from the C runtime's table of devices, which drivers fill in (``docs/new-device.md``).
"""

from __future__ import annotations

import ctypes
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tilewright.runtime.device_table import (
    Attribute,
    driver_name,
    find_driver,
    has_driver,
    host_readable,
    read_attribute,
)
from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY, DLDevice
from tilewright.support.dtype import DataType

if TYPE_CHECKING:
    from tilewright.runtime.ndarray import NDArray

_NAMES = {
    1: "cpu",
    2: "cuda",
    3: "cuda_host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    12: "ext_dev",
    16: "hexagon",
    15: "webgpu",
}

DEFAULT_STREAM = 1
"""DLPack's number of the default stream."""

RPC_OFFSET = 128
"""A device type this much larger is the device of a remote session: type // 128 counts sessions from one."""


class Device:
    """A device, such as ``cpu(0)``. Equal devices have equal kinds and indices."""

    __slots__ = ("device_id", "device_type")

    MASK2STR: ClassVar[dict[int, str]] = _NAMES
    STR2MASK: ClassVar[dict[str, int]] = {
        **{name: number for number, name in _NAMES.items()},
        "llvm": 1,
        "stackvm": 1,
        "c": 1,
        "test": 1,
        "hybrid": 1,
        "composite": 1,
        "gpu": 2,
        "nvptx": 2,
        "cl": 4,
        "sdaccel": 4,
        "aocl": 4,
        "aocl_sw_emu": 4,
        "mtl": 8,
    }

    def __init__(self, device_type: int, device_id: int = 0) -> None:
        self.device_type = int(device_type)
        self.device_id = int(device_id)

    @property
    def kind(self) -> str:
        """The name of the kind of device: its driver's, or where there is none DLPack's."""
        number = self.device_type % RPC_OFFSET
        return driver_name(number) or _NAMES.get(number, f"device{number}")

    @property
    def described(self) -> DLDevice:
        """The device as a C structure."""
        return DLDevice(self.device_type, self.device_id)

    @property
    def exist(self) -> bool:
        """True if this process can use the device."""
        return read_attribute(self.described, Attribute.EXISTS) == 1

    @property
    def has_driver(self) -> bool:
        """True if the runtime has a driver for this kind of device, whether or not there is such a device."""
        return has_driver(self.device_type)

    @property
    def host_readable(self) -> bool:
        """True if code of the host may read and write the device's memory at any time."""
        return host_readable(self.device_type)

    def _known(self, attribute: Attribute) -> int | str | None:
        """An attribute of a device that has a driver; None for any other."""
        return read_attribute(self.described, attribute) if self.has_driver else None

    def _number(self, attribute: Attribute) -> int | None:
        value = self._known(attribute)
        return value if isinstance(value, int) else None

    def _text(self, attribute: Attribute) -> str | None:
        value = self._known(attribute)
        return value if isinstance(value, str) else None

    @property
    def device_name(self) -> str:
        """The product name."""
        return self._text(Attribute.DEVICE_NAME) or f"{self.kind}({self.device_id})"

    @property
    def max_threads_per_block(self) -> int | None:
        """The maximum number of threads per block."""
        return self._number(Attribute.MAX_THREADS_PER_BLOCK)

    @property
    def warp_size(self) -> int | None:
        """The number of threads in a warp."""
        return self._number(Attribute.WARP_SIZE)

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of shared memory per block."""
        return self._number(Attribute.MAX_SHARED_MEMORY_PER_BLOCK)

    @property
    def compute_version(self) -> str | None:
        """The compute capability, such as "9.0"."""
        return self._text(Attribute.COMPUTE_VERSION)

    @property
    def max_clock_rate(self) -> int | None:
        """The maximum clock rate in kHz."""
        return self._number(Attribute.MAX_CLOCK_RATE)

    @property
    def multi_processor_count(self) -> int | None:
        """The number of multiprocessors."""
        return self._number(Attribute.MULTI_PROCESSOR_COUNT)

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """The maximum number of threads of a block along each of its three dimensions."""
        text = self._text(Attribute.MAX_THREAD_DIMENSIONS)
        return None if text is None else list(json.loads(text))

    @property
    def api_version(self) -> int | str | None:
        """The version of the interface that the driver was written for."""
        return self._known(Attribute.API_VERSION)

    @property
    def driver_version(self) -> int | str | None:
        """The version of the system's driver."""
        return self._known(Attribute.DRIVER_VERSION)

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of memory."""
        return self._number(Attribute.TOTAL_MEMORY)

    @property
    def available_global_memory(self) -> int | None:
        """Bytes of memory that are free now."""
        return self._number(Attribute.FREE_MEMORY)

    @property
    def max_registers_per_block(self) -> int | None:
        """32-bit registers per block."""
        return self._number(Attribute.MAX_REGISTERS_PER_BLOCK)

    @property
    def l2_cache_bytes(self) -> int | None:
        """Bytes of L2 cache."""
        return self._number(Attribute.L2_BYTES)

    @property
    def max_dynamic_shared_memory(self) -> int | None:
        """The maximum bytes of dynamic shared memory per block."""
        return self._number(Attribute.MAX_DYNAMIC_SHARED_MEMORY)

    @property
    def shared_memory_per_multi_processor(self) -> int | None:
        """Bytes of shared memory per multiprocessor."""
        return self._number(Attribute.SHARED_MEMORY_PER_MULTI_PROCESSOR)

    @property
    def registers_per_multi_processor(self) -> int | None:
        """32-bit registers per multiprocessor."""
        return self._number(Attribute.REGISTERS_PER_MULTI_PROCESSOR)

    @property
    def threads_per_multi_processor(self) -> int | None:
        """The maximum number of resident threads per multiprocessor."""
        return self._number(Attribute.THREADS_PER_MULTI_PROCESSOR)

    @property
    def blocks_per_multi_processor(self) -> int | None:
        """The maximum number of resident blocks per multiprocessor."""
        return self._number(Attribute.BLOCKS_PER_MULTI_PROCESSOR)

    @property
    def memory_clock_rate(self) -> int | None:
        """The maximum memory clock rate in kHz."""
        return self._number(Attribute.MEMORY_CLOCK_RATE)

    @property
    def memory_bus_bits(self) -> int | None:
        """The width of the memory bus in bits."""
        return self._number(Attribute.MEMORY_BUS_BITS)

    def create_raw_stream(self) -> ctypes.c_void_p | None:
        """A new stream, to be released with ``free_raw_stream``. A CPU has one stream, None."""
        stream = ctypes.c_void_p()
        check(LIBRARY.tilewright_stream_create(self.described, ctypes.byref(stream)))
        return stream if stream.value else None

    def free_raw_stream(self, stream: ctypes.c_void_p | None) -> None:
        """Ends a stream."""
        check(LIBRARY.tilewright_stream_free(self.described, stream))

    def set_raw_stream(self, stream: int | ctypes.c_void_p | None) -> None:
        """Makes the calling thread use a stream of the device from now on: one of ``create_raw_stream``, or another
        library's (``torch.cuda.current_stream().cuda_stream``). None is the default one."""
        check(LIBRARY.tilewright_stream_set(self.described, stream))

    @property
    def raw_stream(self) -> int:
        """The stream that the calling thread uses, as DLPack and other libraries number it: 1 for the default one."""
        stream = ctypes.c_void_p()
        check(LIBRARY.tilewright_stream_current(self.described, ctypes.byref(stream)))
        return stream.value or DEFAULT_STREAM

    def order_streams(
        self, first: int | ctypes.c_void_p | None, second: int | ctypes.c_void_p | None
    ) -> None:
        """Makes later work on the stream ``second`` wait for all earlier work on ``first``; None is the calling
        thread's stream. Both may be another library's."""
        check(LIBRARY.tilewright_stream_wait(self.described, second, first))

    def sync(self, stream: int | ctypes.c_void_p | None = None) -> None:
        """Waits until a stream, by default the calling thread's, has finished all its work."""
        check(LIBRARY.tilewright_stream_sync(self.described, stream))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.device_type, self.device_id) == (
            other.device_type,
            other.device_id,
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        if self.device_type >= RPC_OFFSET:
            return f"remote[{self.device_type // RPC_OFFSET - 1}]:{self.kind}({self.device_id})"
        return f"{self.kind}({self.device_id})"


class ForeignDevice(Device):
    """A device that only another process can use. It makes the arrays that are on it."""

    __slots__ = ()

    @abstractmethod
    def new_array(self, shape: Sequence[int], dtype: DataType) -> NDArray:
        """An uninitialized array on the device."""


def name_device(name: str, device_type: int) -> None:
    """Adds a name for a kind of device, whether or not there is a driver for it here."""
    known = Device.STR2MASK.setdefault(name, device_type)
    if known != device_type:
        raise failure(
            "ValueError", f"{name!r} is the name of device type {known}, and cannot be that of {device_type}"
        )


def device_number(name: str) -> int | None:
    """DLPack's number of a kind of device, by one of its names; None for an unknown name."""
    number = Device.STR2MASK.get(name)
    return find_driver(name) if number is None else number


def device(dev_type: int | str, dev_id: int = 0) -> Device:
    """A device from a kind, such as ``device("cuda", 1)``, or from the start of a target (``"llvm -mcpu=..."``)."""
    if isinstance(dev_type, str):
        name = dev_type.split()[0] if dev_type.strip() else ""
        number = device_number(name)
        if number is None:
            raise failure(
                "ValueError",
                f"{name!r} is not a kind of device; known are {', '.join(sorted(Device.STR2MASK))}",
            )
        return Device(number, dev_id)
    return Device(dev_type, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The host CPU."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """An NVIDIA GPU."""
    return Device(2, dev_id)


def gpu(dev_id: int = 0) -> Device:
    """Another name of :func:`cuda`, kept for scripts that use it."""
    return Device(2, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """An OpenCL device."""
    return Device(4, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A Vulkan device."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """An Apple GPU."""
    return Device(8, dev_id)


def vpi(dev_id: int = 0) -> Device:
    """A simulated device."""
    return Device(9, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """An AMD GPU."""
    return Device(10, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """A device of an extension."""
    return Device(12, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A Hexagon DSP."""
    return Device(16, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A WebGPU device."""
    return Device(15, dev_id)
