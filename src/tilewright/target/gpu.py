"""The description of an NVIDIA GPU that schedules and the code generator use.

``"cuda"`` without ``-arch`` is the first device of this machine, or where there is none the A100 (``sm_80``), whose
code later devices run too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from tilewright.runtime.device import cuda
from tilewright.support.errors import TargetError
from tilewright.target.cuda_arch import device_arch
from tilewright.target.target import Target, TargetLike

_KILOBYTE: Final = 1024
_MEGABYTE: Final = 1024 * 1024
_ARCH: Final = re.compile(r"sm_(\d{2,3})([af]?)")
_DEFAULT_ARCH: Final = "sm_80"
_STATIC_SHARED_BYTES: Final = 48 * _KILOBYTE
_RESERVED_SHARED_BYTES: Final = _KILOBYTE
"""Bytes of shared memory that the system takes for itself in each block, from sm_80 on."""


@dataclass(frozen=True)
class GPUDescription:
    """The properties of a GPU that schedules rely on.

    ``arch`` is LLVM's and ptxas' name; ``number`` its digits. ``shared_bytes`` is the most shared memory of one block,
    of which all beyond ``static_shared_bytes`` must be dynamic; ``multiprocessor_shared_bytes`` is what the blocks of
    one multiprocessor have together. ``bandwidth`` is bytes a second of the device's memory. ``float32_operations`` and
    ``half_operations`` are those that a multiprocessor does in a cycle, the latter on tensor cores where it has them; a
    multiply-add is two.
    """

    arch: str
    number: int
    name: str
    multiprocessors: int
    shared_bytes: int
    multiprocessor_shared_bytes: int
    multiprocessor_threads: int
    l2_bytes: int
    bandwidth: float
    static_shared_bytes: int = _STATIC_SHARED_BYTES
    multiprocessor_registers: int = 65536
    multiprocessor_blocks: int = 32
    block_threads: int = 1024
    warp_size: int = 32
    thread_registers: int = 255
    float32_operations: int = 256
    half_operations: int = 2048

    def operations_per_cycle(self, dtype: str) -> int:
        """What a multiprocessor does in a cycle with an element type, at most: products on its tensor cores if it has
        any. float32 products are three of TF32 there."""
        has_tensor_cores = self.number >= 70
        if dtype in ("int8", "uint8") and self.number >= 75:
            return 2 * self.half_operations
        if dtype in ("float16", "bfloat16"):
            is_half = has_tensor_cores or dtype == "float16"
            return self.half_operations if is_half else self.float32_operations
        if dtype == "float64":
            return {60: 64, 70: 64, 80: 128, 90: 256, 100: 128}.get(self.number, 4)
        if dtype == "float32" and self.has_async_copy:
            return max(self.float32_operations, self.half_operations // 2 // 3)
        return self.float32_operations

    @property
    def is_arch_specific(self) -> bool:
        """True if code may use what only this generation has (``sm_90a``)."""
        return self.arch.endswith("a")

    @property
    def has_int8_dot(self) -> bool:
        """dp4a: four int8 products and their sum in one instruction."""
        return self.number >= 61

    @property
    def has_mma(self) -> bool:
        """``mma.sync`` on float16 (m16n8k8 and up), with ``ldmatrix``."""
        return self.number >= 75

    @property
    def has_async_copy(self) -> bool:
        """``cp.async``, and ``mma.sync`` on bfloat16, TF32 and int8 with k of 16, 8 and 32."""
        return self.number >= 80

    @property
    def has_bulk_copy(self) -> bool:
        """Bulk tensor copies on ``mbarrier``s, clusters of blocks and ``stmatrix``."""
        return self.number >= 90

    @property
    def has_wgmma(self) -> bool:
        """Matrix products of a group of four warps, from shared memory."""
        return self.number == 90 and self.is_arch_specific

    @property
    def has_float8(self) -> bool:
        """Conversions to and from the eight-bit floats."""
        return self.number >= 89


def _model(
    arch: str,
    name: str,
    multiprocessors: int,
    shared_kilobytes: int,
    threads: int,
    l2_megabytes: int,
    gigabytes_per_second: int,
    float32_operations: int,
    half_operations: int,
) -> GPUDescription:
    number = int(arch.removeprefix("sm_"))
    whole = shared_kilobytes * _KILOBYTE
    return GPUDescription(
        arch,
        number,
        name,
        multiprocessors,
        whole - _RESERVED_SHARED_BYTES if number >= 80 else whole,
        whole,
        threads,
        l2_megabytes * _MEGABYTE,
        gigabytes_per_second * 1e9,
        multiprocessor_blocks=16 if number in (75, 86, 87) else 24 if number in (89, 120) else 32,
        float32_operations=float32_operations,
        half_operations=half_operations,
    )


# One device of each generation: compute capability, its name, multiprocessors, KB of shared memory and threads of each,
# MB of L2, GB/s of memory, and operations of a multiprocessor in a cycle in float32 and in float16.
_MODELS: Final = {
    model.number: model
    for model in (
        _model("sm_60", "Tesla P100", 56, 64, 2048, 4, 732, 128, 256),
        _model("sm_61", "Tesla P40", 30, 96, 2048, 3, 346, 256, 256),
        _model("sm_70", "Tesla V100", 80, 96, 2048, 6, 900, 128, 1024),
        _model("sm_72", "Xavier", 8, 96, 2048, 1, 137, 128, 1024),
        _model("sm_75", "T4", 40, 64, 1024, 4, 320, 128, 1024),
        _model("sm_80", "A100", 108, 164, 2048, 40, 1555, 128, 2048),
        _model("sm_86", "A10", 72, 100, 1536, 6, 600, 256, 1024),
        _model("sm_87", "Orin", 16, 164, 1536, 4, 205, 256, 2048),
        _model("sm_89", "L40", 142, 100, 1536, 96, 864, 256, 1024),
        _model("sm_90", "H100", 132, 228, 2048, 50, 3350, 256, 4096),
        _model("sm_100", "B200", 148, 228, 2048, 126, 8000, 256, 8192),
        _model("sm_103", "B300", 148, 228, 2048, 126, 8000, 256, 8192),
        _model("sm_120", "RTX 5090", 170, 100, 1536, 96, 1792, 256, 1024),
    )
}


def describe_gpu(target: TargetLike) -> GPUDescription:
    """The GPU that a target names with ``-arch`` (or ``-mcpu``), or the one that it means without. Where it is this
    machine's, what the device itself says wins over the table."""
    made = Target(target)
    described = describe_arch(made)
    if device_arch().rstrip("af") != f"sm_{described.number}":
        return described
    device = cuda(0)
    return replace(
        described,
        name=device.device_name,
        multiprocessors=device.multi_processor_count or described.multiprocessors,
        # The driver may name the limit of static shared memory only.
        shared_bytes=_limit(made, max(device.max_shared_memory_per_block or 0, described.shared_bytes)),
        block_threads=min(device.max_threads_per_block or described.block_threads, made.max_num_threads),
    )


@lru_cache(maxsize=64)
def describe_arch(target: Target) -> GPUDescription:
    """The GPU that a target names, from the table only: no driver is asked."""
    arch = str(target.attrs.get("arch") or target.attrs.get("mcpu") or _DEFAULT_ARCH)
    found = _ARCH.fullmatch(arch)
    if found is None:
        raise TargetError(
            f"-arch={arch} is not an NVIDIA architecture; expected for example sm_80, or sm_90a with all of Hopper"
        )
    number = int(found[1])
    model = _MODELS.get(number) or _nearest(number, arch)
    return replace(
        model,
        arch=arch,
        number=number,
        shared_bytes=_limit(target, model.shared_bytes),
        block_threads=min(model.block_threads, target.max_num_threads),
    )


def _limit(target: Target, shared_bytes: int) -> int:
    """The shared memory of a block, unless the target allows less."""
    given = target.attrs.get("shared_memory_per_block")
    return shared_bytes if given is None else int(given)


def _nearest(number: int, arch: str) -> GPUDescription:
    """The model of the same generation with the next smaller number."""
    smaller = [known for known in _MODELS if known <= number and known // 10 == number // 10]
    if not smaller:
        known = ", ".join(f"sm_{one}" for one in _MODELS)
        raise TargetError(f"-arch={arch} is not a known NVIDIA architecture; known are {known}")
    return _MODELS[max(smaller)]
