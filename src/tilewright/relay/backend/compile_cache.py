"""Compiled kernels on disk, and compiling the missing ones in parallel.

An entry is one file, named by a digest of everything that decides its content: the function, the target with all its
features, the options, and this package's own source. It is written beside its final name and renamed, so that two
processes may write at once, and one that dies leaves nothing half done. A damaged entry is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.codegen.llvm.build import compile_unit
from tilewright.codegen.llvm.unit import CompiledUnit
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.relay.backend.te_compiler import kernel_key, lower_primitive
from tilewright.relay.function import Function
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TilewrightError
from tilewright.support.options import cache_dir, use_compile_cache
from tilewright.support.processes import run_in_processes
from tilewright.target import Target
from tilewright.target.cpu import llvm_machine_options
from tilewright.tir.build_pipeline import host_passes, mixed_passes

_PACKAGE = Path(__file__).resolve().parents[2]

Lowering = Callable[[Function, Target, str], IRModule]
"""From a primitive function, a target and a name to a function of that name."""


@dataclass(frozen=True)
class CacheReport:
    """How many kernels were compiled, and how many came from the cache."""

    compiled: int
    cached: int


@cache
def source_version() -> str:
    """Changes whenever the package's source does."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(_PACKAGE)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _entry(key: str, name: str, target: Target) -> Path:
    machine = " ".join(llvm_machine_options(target))
    text = f"{key}\n{name}\n{machine}\n{source_version()}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return cache_dir() / "code" / digest[:2] / f"{digest}.unit"


def _read(path: Path) -> CompiledUnit | None:
    """The entry; None where there is none, or a damaged one."""
    try:
        return CompiledUnit.from_bytes(path.read_bytes())
    except (OSError, TilewrightError, ValueError, KeyError):
        return None


def compile_loops(loops: IRModule, target: Target) -> CompiledUnit:
    """Machine code for the host from loops."""
    module = Sequential(mixed_passes(target, target), name="mixed")(loops)
    return compile_unit(Sequential(host_passes(target, target), name="host")(module), target)


def compile_kernels(
    kernels: Mapping[str, Function], target: Target, lowering: Lowering = lower_primitive
) -> tuple[dict[str, CompiledUnit], CacheReport]:
    """Machine code for every primitive function, by name; ``lowering`` makes the loops."""
    units: dict[str, CompiledUnit] = {}
    entries: dict[str, Path | None] = {}
    for name, function in kernels.items():
        key = kernel_key(function, target) if use_compile_cache() else None
        entries[name] = path = None if key is None else _entry(f"{lowering.__name__} {key}", name, target)
        found = None if path is None else _read(path)
        if found is not None:
            units[name] = found
    missing = [name for name in kernels if name not in units]
    with tempfile.TemporaryDirectory() as folder:
        places = [entries[name] or Path(folder) / f"{index}.unit" for index, name in enumerate(missing)]

        def work(index: int) -> None:
            name = missing[index]
            _store(places[index], compile_loops(lowering(kernels[name], target, name), target))

        shared = [index for index, name in enumerate(missing) if _may_leave_process(kernels[name], target)]
        run_in_processes(lambda job: work(shared[job]), len(shared))
        for index, name in enumerate(missing):
            made = _read(places[index])
            if made is None:
                made = compile_loops(lowering(kernels[name], target, name), target)
                if entries[name] is not None:
                    _store(places[index], made)
            units[name] = made
    return units, CacheReport(len(missing), len(kernels) - len(missing))


def _may_leave_process(function: Function, target: Target) -> bool:
    """A kernel that instruments watch, or that a user's code takes part in making, is compiled here."""
    return kernel_key(function, target) is not None


def _store(path: Path, unit: CompiledUnit) -> None:
    """Write an entry; a cache that cannot be written costs time, not the result."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, unit.to_bytes())


def prune(limit_bytes: int) -> int:
    """Remove the entries that were used longest ago until the rest fits; gives the bytes removed."""
    folder = cache_dir() / "code"
    found: list[tuple[float, int, Path]] = []
    for path in folder.rglob("*.unit") if folder.is_dir() else ():
        with suppress(OSError):
            status = path.stat()
            found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    total = sum(size for _, size, _ in found)
    removed = 0
    for _, size, path in sorted(found):
        if total - removed <= limit_bytes:
            break
        with suppress(OSError):
            os.unlink(path)
            removed += size
    return removed
