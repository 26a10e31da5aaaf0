"""Temporary folders, file locks and paths."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import shutil
import tempfile
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tilewright.runtime.failure import failure


class DirectoryCreatedPastAtExit(Exception):
    """A temporary folder was requested while the interpreter was removing them all."""


class TempDirectory:
    """A temporary folder, removed with this object or when the interpreter ends, whichever comes first."""

    TEMPDIRS: set[str] | None = set()
    _KEEP_FOR_DEBUG = False
    _debug_parent: str | None = None
    _debug_count = 0
    _lock = threading.Lock()

    @classmethod
    def remove_tempdirs(cls) -> None:
        """Removes every folder that is left; none can be made afterwards."""
        with cls._lock:
            folders, cls.TEMPDIRS = cls.TEMPDIRS or set(), None
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Folders made inside the ``with`` block stay when the program ends."""
        before, cls._KEEP_FOR_DEBUG = cls._KEEP_FOR_DEBUG, set_to
        try:
            yield
        finally:
            cls._KEEP_FOR_DEBUG = before

    @classmethod
    def _make_kept(cls) -> str:
        """A folder to look into: numbered, beside the others of this process, under the time of the first."""
        with cls._lock:
            if cls._debug_parent is None:
                parent = Path(tempfile.gettempdir(), "tilewright-debug")
                parent.mkdir(exist_ok=True)
                begin = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
                cls._debug_parent = tempfile.mkdtemp(prefix=f"{begin}___", dir=parent)
            made = os.path.join(cls._debug_parent, f"{cls._debug_count:05d}")
            cls._debug_count += 1
        os.mkdir(made)
        return made

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        if self.TEMPDIRS is None:
            raise DirectoryCreatedPastAtExit
        self._kept = self._KEEP_FOR_DEBUG if keep_for_debug is None else keep_for_debug
        if custom_path:
            os.mkdir(custom_path)
            self.temp_dir = custom_path
        else:
            self.temp_dir = self._make_kept() if self._kept else tempfile.mkdtemp(prefix="tilewright-")
        if not self._kept:
            with self._lock:
                self.TEMPDIRS.add(self.temp_dir)

    def remove(self) -> None:
        """Removes the folder with all that is in it."""
        if not self.temp_dir or self._kept:
            return
        shutil.rmtree(self.temp_dir, ignore_errors=True)
        with self._lock:
            if self.TEMPDIRS is not None:
                self.TEMPDIRS.discard(self.temp_dir)
        self.temp_dir = ""

    @property
    def path(self) -> str:
        """Where the folder is."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, other: str | Path) -> Path:
        return Path(self.temp_dir) / other

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.remove()

    def __del__(self) -> None:
        if getattr(self, "temp_dir", None) and shutil is not None:
            self.remove()


atexit.register(TempDirectory.remove_tempdirs)


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new temporary folder, at ``custom_path`` if one is given, which must not exist yet."""
    return TempDirectory(custom_path, keep_for_debug)


class FileLock:
    """A lock between processes, held from construction to ``release``; the file itself stays."""

    def __init__(self, path: str) -> None:
        self.lock_file: IO[str] | None = open(path, "w")  # noqa: SIM115 - open for as long as it is held
        try:
            import fcntl
        except ImportError:  # a system without it: Windows
            return
        fcntl.lockf(self.lock_file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Lets the next process have it."""
        if self.lock_file is not None:
            self.lock_file.close()
            self.lock_file = None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.release()


def filelock(path: str) -> FileLock:
    """Waits for the lock on a file and holds it."""
    return FileLock(path)


def is_source_path(path: str) -> bool:
    """True if a path names a source file, by its suffix."""
    return os.path.splitext(path)[1] in (".cpp", ".c", ".cc", ".cu", ".cl", ".ll")


def which(exec_name: str) -> str:
    """The path of a program; an error if it is not on the PATH."""
    found = shutil.which(exec_name)
    if found is None:
        raise failure("RuntimeError", f"no program {exec_name!r} on the PATH")
    return found
