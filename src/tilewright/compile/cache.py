"""Compiled units on disk.

A unit is one file, named by the digest of what it was compiled from: the loops, the targets, and the versions of the
code generators. A *shortcut* is a second name, found without making the loops: a digest of what they would be made
from.

Files are written beside their final name and renamed: several processes may write at once, and one that dies leaves
nothing half done. What is damaged counts as missing. When the folder outgrows ``TILEWRIGHT_CACHE_LIMIT``, the units
that were used longest ago are removed. A folder that cannot be made, or that others may write to, is not used:
everything is compiled.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from tilewright.compile.unit import Unit
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import TilewrightError
from tilewright.support.options import cache_dir, cache_limit, use_compile_cache

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARE_WRITTEN_BETWEEN_PRUNINGS = 16
"""The folder is looked through when a process has written this part of the limit: it never outgrows it by more."""

_written = 0


@cache
def source_version() -> str:
    """Changes whenever the package's source does."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(_PACKAGE)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def folder() -> Path | None:
    """Where units are; None where there is no folder that this user, and only this user, writes to."""
    if not use_compile_cache():
        return None
    return _own_folder(cache_dir() / "code")


@cache
def _own_folder(path: Path) -> Path | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(exist_ok=True, mode=0o700)
        status = path.stat()
    except OSError as problem:
        _warn(f"{path} cannot be used: {problem.strerror or problem}")
        return None
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            _warn(f"{path} belongs to another user")
            return None
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            _warn(f"others may write to {path}; 'chmod go-w' makes it usable")
            return None
    if not os.access(path, os.W_OK | os.X_OK):
        _warn(f"{path} cannot be written")
        return None
    return path


def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled code is not kept: {reason}. TILEWRIGHT_CACHE_DIR names another folder, TILEWRIGHT_NO_CACHE=1 does "
        "without",
        RuntimeWarning,
        stacklevel=4,
    )


def _path(digest: str, suffix: str) -> Path | None:
    found = folder()
    return None if found is None else found / digest[:2] / f"{digest}.{suffix}"


def _digest(text: str) -> str:
    return hashlib.sha256(f"{text}\n{source_version()}".encode()).hexdigest()


def find_unit(key: str) -> Unit | None:
    """The unit of a key; None where there is none, or a damaged one."""
    path = _path(_digest(key), "unit")
    if path is None:
        return None
    try:
        unit = Unit.from_bytes(path.read_bytes())
        # What is used is not pruned; some file systems do not keep the time of a read.
        os.utime(path)
    except (OSError, TilewrightError, ValueError, KeyError, TypeError):
        return None
    return unit


def store_unit(key: str, unit: Unit) -> None:
    """Keep a unit; where that fails, it costs time later and nothing else."""
    _store(_path(_digest(key), "unit"), unit.to_bytes())


def find_shortcut(shortcut: str) -> str | None:
    """The key that a shortcut leads to."""
    path = _path(_digest(shortcut), "key")
    if path is None:
        return None
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None


def store_shortcut(shortcut: str, key: str) -> None:
    """Have a shortcut lead to a key."""
    _store(_path(_digest(shortcut), "key"), key.encode())


def _store(path: Path | None, block: bytes) -> None:
    global _written
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True, mode=0o700)
        write_bytes(path, block)
        _written += len(block)
    limit = cache_limit()
    if _written > limit // _SHARE_WRITTEN_BETWEEN_PRUNINGS:
        _written = 0
        prune(limit)


def _entries(place: Path) -> Iterator[tuple[float, int, Path]]:
    for pattern in ("*.unit", "*.key"):
        for path in place.rglob(pattern):
            with suppress(OSError):
                status = path.stat()
                yield max(status.st_atime, status.st_mtime), status.st_size, path


def prune(limit_bytes: int) -> int:
    """Remove what was used longest ago until the rest fits; gives the bytes removed."""
    place = folder()
    if place is None:
        return 0
    found = sorted(_entries(place))
    total = sum(size for _, size, _ in found)
    removed = 0
    for _, size, path in found:
        if total - removed <= limit_bytes:
            break
        with suppress(OSError):
            path.unlink()
            removed += size
    return removed
