"""The GPUs of this machine, in words."""

from __future__ import annotations

from itertools import count, takewhile

from tilewright.driver.cli.output import bytes_text
from tilewright.runtime.device import Device, cuda


def cuda_devices() -> list[Device]:
    """The NVIDIA GPUs that this process can use."""
    return list(takewhile(lambda device: device.exist, map(cuda, count())))


def describe_device(device: Device) -> str:
    """Its name, what it executes, its memory and its driver."""
    memory = bytes_text(device.total_global_memory or 0)
    free = bytes_text(device.available_global_memory or 0)
    version = device.driver_version
    driver = f"CUDA {version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else version
    return (
        f"{device.device_name}, compute capability {device.compute_version}, {device.multi_processor_count} "
        f"multiprocessors, {memory} of memory ({free} free), driver for {driver}"
    )
