"""What a search knows of the machine: sizes that its sketches, samples and checks depend on."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import TargetError
from tilewright.target.cpu import describe_cpu
from tilewright.target.gpu import describe_gpu
from tilewright.target.target import Target, TargetLike

_NO_LIMIT = 2**31 - 1
_FIELDS = (
    "num_cores",
    "vector_unit_bytes",
    "cache_line_bytes",
    "max_shared_memory_per_block",
    "max_local_memory_per_block",
    "max_threads_per_block",
    "max_vthread_extent",
    "warp_size",
)


class HardwareParams:
    """Sizes of a machine. What is not given is the target's: its description's, or nothing for a target that has
    none."""

    def __init__(
        self,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: TargetLike | None = None,
        target_host: TargetLike | None = None,
    ) -> None:
        given = (
            num_cores,
            vector_unit_bytes,
            cache_line_bytes,
            max_shared_memory_per_block,
            max_local_memory_per_block,
            max_threads_per_block,
            max_vthread_extent,
            warp_size,
        )
        known: dict[str, int] = {}
        if any(value is None for value in given):
            known = _of_target(Target(target if target is not None else "llvm", target_host))
        self.values = {
            name: known[name] if value is None else int(value)
            for name, value in zip(_FIELDS, given, strict=True)
        }

    def __getattr__(self, name: str) -> int:
        values = self.__dict__.get("values", {})
        if name in values:
            found: int = values[name]
            return found
        raise AttributeError(f"HardwareParams has no {name!r}; it has {', '.join(_FIELDS)}")

    def as_list(self) -> list[int]:
        """The sizes in the order of records."""
        return [self.values[name] for name in _FIELDS]

    def gpu_limits(self) -> dict[str, int]:
        """The limits that ``tir.analysis.verify_gpu_code`` checks; what is zero or less is not limited."""
        limits = {
            "max_shared_memory_per_block": self.max_shared_memory_per_block,
            "max_local_memory_per_block": self.max_local_memory_per_block,
            "max_threads_per_block": self.max_threads_per_block,
            "max_vector_bytes": self.vector_unit_bytes,
            "max_vthread": self.max_vthread_extent,
        }
        return {name: limit for name, limit in limits.items() if limit > 0}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HardwareParams) and self.values == other.values

    def __hash__(self) -> int:
        return hash(tuple(self.values.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return HardwareParams, tuple(self.as_list())

    def __repr__(self) -> str:
        return f"HardwareParams({', '.join(f'{name}={value}' for name, value in self.values.items())})"

    def __str__(self) -> str:
        lines = "\n".join(f"  {name}: {value}" for name, value in self.values.items())
        return f"hardware parameters:\n{lines}"


def _of_target(target: Target) -> dict[str, int]:
    """The sizes of a target's description; zero for what it does not say."""
    known = dict.fromkeys(_FIELDS, 0)
    if "gpu" in target.keys or target.kind.name in ("cuda", "nvptx"):
        try:
            gpu = describe_gpu(target)
        except TargetError:
            # Not NVIDIA's: what the target's own options say.
            known.update(
                num_cores=-1,
                vector_unit_bytes=16,
                cache_line_bytes=64,
                max_shared_memory_per_block=int(target.attrs.get("max_shared_memory_per_block", 32 * 1024)),
                max_local_memory_per_block=_NO_LIMIT,
                max_threads_per_block=int(target.max_num_threads),
                max_vthread_extent=8,
                warp_size=int(target.thread_warp_size),
            )
            return known
        known.update(
            num_cores=-1,
            vector_unit_bytes=16,
            cache_line_bytes=64,
            max_shared_memory_per_block=gpu.static_shared_bytes,
            max_local_memory_per_block=_NO_LIMIT,
            max_threads_per_block=gpu.block_threads,
            max_vthread_extent=gpu.warp_size // 4,
            warp_size=gpu.warp_size,
        )
        return known
    cpu = describe_cpu(target)
    known.update(
        num_cores=cpu.cores, vector_unit_bytes=cpu.vector_bits // 8, cache_line_bytes=cpu.cache_line_bytes
    )
    return known
