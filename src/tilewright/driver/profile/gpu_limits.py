"""The limits of a GPU: its peak rates, by its clock and the description of its generation, and what it can copy."""

from __future__ import annotations

from tilewright.codegen.llvm.limits import Bandwidth, MachineLimits
from tilewright.codegen.llvm.peaks import RATE_TYPES
from tilewright.runtime import ndarray
from tilewright.runtime.benchmark import time_evaluator
from tilewright.runtime.device import Device
from tilewright.runtime.packed_func import convert_to_tvm_func
from tilewright.target import Target
from tilewright.target.gpu import describe_gpu

_MEMORY_BYTES = 512 << 20
_COPIES, _REPEATS = 20, 5


def gpu_limits(device: Device) -> MachineLimits:
    """The limits of an NVIDIA GPU of this machine; takes a few milliseconds."""
    gpu = describe_gpu(Target.from_device(device))
    cycles = gpu.multiprocessors * (device.max_clock_rate or 0) * 1e3
    peaks = {dtype: gpu.operations_per_cycle(dtype) * cycles for dtype in RATE_TYPES}
    memory = Bandwidth("memory", None, _copied_per_second(device, _MEMORY_BYTES))
    capacity = device.l2_cache_bytes or gpu.l2_bytes
    # A half holds what is read and what is written; the rest is for what else the cache has.
    cache = Bandwidth("L2", capacity, _copied_per_second(device, capacity // 4))
    levels = (cache, memory) if cache.bytes_per_second > memory.bytes_per_second else (memory,)
    return MachineLimits(
        device.device_name, gpu.multiprocessors, peaks.pop("float32"), levels, peaks, "multiprocessor"
    )


def _copied_per_second(device: Device, size_bytes: int) -> float:
    """Bytes that are read and written a second by a copy of so many."""
    source = ndarray.empty((size_bytes,), "uint8", device)
    result = ndarray.empty((size_bytes,), "uint8", device)

    def copy() -> None:
        source.copyto(result)

    times = time_evaluator(convert_to_tvm_func(copy), _COPIES, _REPEATS, device=device)()
    return 2 * size_bytes / times.min
