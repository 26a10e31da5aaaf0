"""What was measured on this machine, kept in the cache folder: ``tilewright doctor --measure`` writes it.

A measurement belongs to one processor, with the cores that this process may use: a folder that several machines share
holds one file for each. A file that is damaged, or that says something impossible, counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TargetError
from tilewright.support.options import cache_dir
from tilewright.target.host import host_cores, host_llvm, host_processor

FOLDER: Final = "machines"
"""Where measurements are in the cache folder."""

_LEVELS: Final = ("L1", "L2", "L3", "memory")


@dataclass(frozen=True)
class LevelRate:
    """Bytes a second that one core reads from a level of memory, and that all cores together do."""

    level: str
    one_core: float
    all_cores: float


@dataclass(frozen=True)
class MeasuredCPU:
    """The rates of a machine.

    ``cycles_per_second`` is the clock. Rates of multiply-adds count two operations for each. ``fma_latency`` and
    ``panel_bytes`` are of one core: the seconds of a float32 multiply-add that waits for the one before, and the bytes
    a second that a loop of multiply-adds streams from L2. ``dispatch_seconds`` is what a parallel loop costs beyond its
    iterations.
    """

    processor: str
    cores: int
    vector_bits: int
    cycles_per_second: float
    flops_one_core: float
    flops_all_cores: float
    fma_latency: float
    panel_bytes: float
    dispatch_seconds: float
    levels: tuple[LevelRate, ...]

    @property
    def fma_units(self) -> int:
        """Multiply-adds of full width that start in each cycle."""
        each = 2 * max(self.vector_bits // 32, 1) * self.cycles_per_second
        return max(1, round(self.flops_one_core / each))

    @property
    def fma_latency_cycles(self) -> int:
        """Cycles of a multiply-add."""
        return max(1, round(self.fma_latency * self.cycles_per_second))

    @property
    def l2_bytes_per_cycle(self) -> float:
        """Bytes of a panel that a loop of multiply-adds streams from L2 in a cycle."""
        return _rounded(self.panel_bytes / self.cycles_per_second)

    @property
    def memory_bytes_per_cycle(self) -> float:
        """Bytes that each core gets from memory in a cycle while all of them read."""
        return self._bytes_per_cycle(self.levels[-1])

    @property
    def l3_bytes_per_cycle(self) -> float:
        """Bytes that each core gets from L3 in a cycle while all of them read; from memory where there is no L3."""
        return self._bytes_per_cycle(next((one for one in self.levels if one.level == "L3"), self.levels[-1]))

    def _bytes_per_cycle(self, level: LevelRate) -> float:
        return _rounded(level.all_cores / self.cores / self.cycles_per_second)

    @property
    def parallel_work(self) -> int:
        """The operations that one core does while a parallel loop is dispatched, with one vector in each cycle."""
        lanes = max(self.vector_bits // 32, 1)
        return int(_rounded(self.dispatch_seconds * self.cycles_per_second * lanes))


def _rounded(figure: float) -> float:
    """To two digits: code is not to change with the noise of a measurement."""
    return float(f"{figure:.2g}")


def keep_measurement(measured: MeasuredCPU) -> Path:
    """Write the measurement of this machine for the processes to come, and for this one; gives the file."""
    path = _path(cache_dir())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_bytes(path, json.dumps(asdict(measured), indent=1).encode())
    _read.cache_clear()
    return path


def kept_measurement() -> MeasuredCPU | None:
    """The measurement of this machine; None where there is none. A process reads it once."""
    return _read(cache_dir())


@lru_cache(maxsize=8)
def _read(folder: Path) -> MeasuredCPU | None:
    if not (folder / FOLDER).is_dir():
        return None  # without LLVM, which the name of the file needs
    try:
        return _checked(json.loads(_path(folder).read_bytes()))
    except (OSError, TargetError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _path(folder: Path) -> Path:
    triple, cpu, features = host_llvm()
    said = "\n".join([host_processor(), triple, cpu, features, str(host_cores())])
    return folder / FOLDER / f"{cpu}-{hashlib.sha256(said.encode()).hexdigest()[:16]}.json"


def _checked(said: dict[str, object]) -> MeasuredCPU:
    """The measurement that a file holds; ``ValueError`` and the like where it is none."""
    levels = tuple(LevelRate(**level) for level in said.pop("levels"))  # type: ignore[attr-defined]
    measured = MeasuredCPU(levels=levels, **said)  # type: ignore[arg-type]
    rates = [
        *(
            measured.cycles_per_second,
            measured.flops_one_core,
            measured.flops_all_cores,
            measured.fma_latency,
        ),
        *(
            measured.panel_bytes,
            measured.dispatch_seconds,
            float(measured.cores),
            float(measured.vector_bits),
        ),
        *(rate for level in levels for rate in (level.one_core, level.all_cores)),
    ]
    if not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise ValueError("a rate is not positive")
    if not levels or levels[-1].level != "memory" or any(level.level not in _LEVELS for level in levels):
        raise ValueError("the levels end with memory")
    return measured
