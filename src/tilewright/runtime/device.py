"""Devices: a kind, under DLPack's number for it, and an index."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import ClassVar

from tilewright.runtime.failure import failure

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
        """The name of the kind of device."""
        return _NAMES.get(self.device_type % RPC_OFFSET, f"device{self.device_type % RPC_OFFSET}")

    @property
    def exist(self) -> bool:
        """True if this process can use the device."""
        if self.device_type == 1:
            return self.device_id == 0
        return self.device_type == 2 and self.device_id < _cuda_devices()

    @property
    def device_name(self) -> str:
        """A name for people."""
        return f"{self.kind}({self.device_id})"

    def _attribute(self) -> None:
        """What drivers of GPUs say of their device; there is no driver here, so nothing is known."""
        return

    max_threads_per_block = property(_attribute)
    warp_size = property(_attribute)
    max_shared_memory_per_block = property(_attribute)
    compute_version = property(_attribute)
    max_clock_rate = property(_attribute)
    multi_processor_count = property(_attribute)
    max_thread_dimensions = property(_attribute)
    api_version = property(_attribute)
    driver_version = property(_attribute)

    def _only_stream(self) -> None:
        if self.device_type != 1:
            raise failure("RuntimeError", f"{self} has no streams: the runtime has no driver for it")

    def create_raw_stream(self) -> None:
        """A processor has one stream, which is None."""
        self._only_stream()

    def free_raw_stream(self, stream: object) -> None:
        """Nothing to do for the only stream."""
        self._only_stream()

    def set_raw_stream(self, stream: object) -> None:
        """Nothing to do for the only stream."""
        self._only_stream()

    def sync(self, stream: object = None) -> None:
        """Waits until the device has done all it was given. Host functions are done when they return."""
        if self.device_type != 1:
            raise failure("RuntimeError", f"{self} cannot be waited for: the runtime has no driver for it")

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


@cache
def _cuda_devices() -> int:
    """NVIDIA devices with a working driver; zero without one."""
    name = ctypes.util.find_library("cuda") or "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def device(dev_type: int | str, dev_id: int = 0) -> Device:
    """A device from a kind, such as ``device("cuda", 1)``, or from the start of a target (``"llvm -mcpu=..."``)."""
    if isinstance(dev_type, str):
        name = dev_type.split()[0] if dev_type.strip() else ""
        number = Device.STR2MASK.get(name)
        if number is None:
            raise failure(
                "ValueError",
                f"{name!r} is not a kind of device; known are {', '.join(sorted(Device.STR2MASK))}",
            )
        return Device(number, dev_id)
    return Device(dev_type, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The host's processor."""
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
