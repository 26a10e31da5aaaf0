"""Shared libraries that Python wheels bring: where they are, and loading one with what it needs."""

from __future__ import annotations

import ctypes
import re
import site
import sys
from collections.abc import Iterable
from pathlib import Path

from tilewright.runtime.failure import failure

_MISSING = re.compile(r"([^\s:/]+): cannot open shared object file")


def library_folders() -> list[Path]:
    """Where wheels put libraries: the ``lib`` of this Python, and of the user's own packages."""
    return list(
        dict.fromkeys(Path(root) / "lib" for root in (sys.prefix, sys.base_prefix, site.getuserbase()))
    )


def find_library(names: Iterable[str], folders: Iterable[Path] = ()) -> Path | None:
    """The first file of one of these names."""
    for folder in (*folders, *library_folders()):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def load_library(path: Path, depth: int = 0) -> ctypes.CDLL:
    """A library; what it needs is taken from its own folder where the system's loader does not find it."""
    while True:
        try:
            return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL if depth else ctypes.DEFAULT_MODE)
        except OSError as error:
            missing = _MISSING.search(str(error))
            beside = path.parent / missing[1] if missing else path
            if depth > 8 or not beside.is_file() or beside == path:
                raise failure("OSError", f"cannot load {path}: {error}") from error
            load_library(beside, depth + 1)
