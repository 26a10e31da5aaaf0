"""What schedules know about a device with blocks of threads, from the current target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.support.dtype import DataType
from tilewright.target.gpu import describe_gpu
from tilewright.target.target import Target

VECTOR_BYTES: Final = 16
"""The widest load or store of one thread."""


@dataclass(frozen=True)
class GpuMachine:
    """Limits of a block, how much there is of everything, and whether copies to shared memory can be asynchronous.

    ``warp`` is the number of threads that can exchange registers, 1 where none can. ``blocks_at_once`` is the number of
    blocks of ``threads`` threads that run on the whole device at a time.
    """

    warp: int
    max_threads: int
    shared_bytes: int
    multiprocessors: int
    multiprocessor_threads: int
    vector_bytes: int = VECTOR_BYTES
    has_async_copy: bool = False

    def lanes(self, dtype: DataType | str) -> int:
        """Elements of a type in the widest load or store."""
        return max(self.vector_bytes * 8 // max(DataType(dtype).bits, 8), 1)

    def threads(self, wanted: int) -> int:
        """A power of two of threads for a block: at most ``wanted``, and what the device has."""
        return 1 << (max(min(wanted, self.max_threads), 1).bit_length() - 1)

    def blocks_at_once(self, threads: int) -> int:
        """Blocks of so many threads that run at the same time."""
        return self.multiprocessors * max(self.multiprocessor_threads // max(threads, 1), 1)


def powers_of_two(least: int, most: int) -> list[int]:
    """Those between two numbers, the greatest first."""
    found = [1 << exponent for exponent in range(max(most, 1).bit_length())]
    return [one for one in reversed(found) if one >= least]


def current_gpu() -> GpuMachine:
    """The device of the current target; a plain one if no target is set."""
    target = Target.current()
    if target is not None and "cuda" in target.keys:
        described = describe_gpu(target)
        return GpuMachine(
            warp=described.warp_size if target.kind.warp_shuffle else 1,
            max_threads=min(described.block_threads, target.max_num_threads),
            shared_bytes=described.static_shared_bytes,
            multiprocessors=described.multiprocessors,
            multiprocessor_threads=described.multiprocessor_threads,
            has_async_copy=described.has_async_copy,
        )
    attributes = {} if target is None else target.attrs
    most = int(attributes.get("max_num_threads") or 256)
    shuffles = target is not None and target.kind.warp_shuffle
    return GpuMachine(
        warp=int(attributes.get("thread_warp_size") or 32) if shuffles else 1,
        max_threads=most,
        shared_bytes=int(attributes.get("shared_memory_per_block") or 32 * 1024),
        multiprocessors=32,
        multiprocessor_threads=max(most, 1024),
    )


def power_of_two_divisor(number: int, most: int) -> int:
    """The largest power of two up to ``most`` that divides a number."""
    factor = 1
    while factor * 2 <= most and number % (factor * 2) == 0:
        factor *= 2
    return factor


def power_of_two_below(number: int) -> int:
    """The largest power of two that is not above a number; 1 for none."""
    return 1 << max(number.bit_length() - 1, 0)
