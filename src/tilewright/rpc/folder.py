"""The folder of a session. No path that a client sends reaches anything outside of it.

Every step opens the next folder relative to the one before, and follows no symbolic link. So there is no moment at
which a link that somebody puts there could redirect a path that was checked before.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

MOST_NAMES = 16
MOST_PATH = 1024
MOST_BYTES = 64 << 30

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def names_of(path: str) -> list[str]:
    """The names in a path; an error for a path that could lead anywhere else than below its folder."""
    names = path.split("/")
    if (
        len(path.encode()) > MOST_PATH
        or len(names) > MOST_NAMES
        or any(name in ("", ".", "..") or any(bad in name for bad in "\\:\0") for name in names)
    ):
        raise PermissionError(
            f"the path {path!r} is not one of the session's folder: a path is made of at most {MOST_NAMES} names "
            "with / between them, none of them empty, '.' or '..', without a backslash or a colon"
        )
    return names


def _refusal(path: str, error: OSError) -> OSError:
    if error.errno == errno.ENOENT:
        return FileNotFoundError(f"there is no {path!r} in the session's folder")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EMLINK, errno.ENXIO):
        return PermissionError(f"{path!r} is not a regular file below real folders")
    return OSError(f"cannot use {path!r}: {error.strerror}")


class Folder:
    """A folder that was made for one session, and is deleted with it."""

    def __init__(self, root: Path, most_bytes: int = MOST_BYTES) -> None:
        self.root = root
        self._most_bytes = most_bytes

    @contextmanager
    def _parent(self, path: str, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that a path's last name is in, and that name."""
        names = names_of(path)
        at = os.open(self.root, _FOLDER)
        try:
            for name in names[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=at)
                below = os.open(name, _FOLDER, dir_fd=at)
                os.close(at)
                at = below
            yield at, names[-1]
        except OSError as error:
            if error.errno is None:
                raise
            raise _refusal(path, error) from None
        finally:
            os.close(at)

    @contextmanager
    def reading(self, path: str) -> Iterator[tuple[BinaryIO, int]]:
        """A regular file, open for reading, and its size."""
        with self._parent(path) as (folder, name):
            number = os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)
            with os.fdopen(number, "rb") as file:
                found = os.fstat(number)
                if not stat.S_ISREG(found.st_mode):
                    raise PermissionError(f"{path!r} is not a regular file")
                yield file, found.st_size

    @contextmanager
    def writing(self, path: str, size: int) -> Iterator[BinaryIO]:
        """A new file that takes the place of the path when it is complete; nothing changes on an error."""
        used = self.used()
        if used + size > self._most_bytes:
            raise OSError(
                f"no room for {size} bytes in the session's folder: it has {used} of at most {self._most_bytes}"
            )
        with self._parent(path, make=True) as (folder, name):
            self._require_replaceable(folder, name, path)
            part = f".{secrets.token_hex(8)}"
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700, dir_fd=folder)
            try:
                with os.fdopen(number, "wb", buffering=0) as file:
                    yield file
                os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(part, dir_fd=folder)
                raise

    @staticmethod
    def _require_replaceable(folder: int, name: str, path: str) -> None:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(f"{path!r} exists and is not a regular file")

    def remove(self, path: str) -> None:
        """Deletes a regular file."""
        with self._parent(path) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise PermissionError(f"{path!r} is not a regular file")
            os.unlink(name, dir_fd=folder)

    def names(self, path: str = "") -> list[str]:
        """The regular files and folders in a folder, sorted; the names of folders end with a slash."""
        with self._parent(f"{path}/any" if path else "any") as (folder, _), os.scandir(folder) as entries:
            found = [
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not entry.is_symlink() and not entry.name.startswith(".")
            ]
        return sorted(found)

    def file(self, path: str) -> Path:
        """The place of a regular file, to be loaded from."""
        with self.reading(path):
            return self.root.joinpath(*names_of(path))

    def used(self) -> int:
        """The bytes in all files."""
        total = 0
        for where, _, files in os.walk(self.root, followlinks=False):
            for name in files:
                total += os.lstat(os.path.join(where, name)).st_size
        return total

    def delete(self) -> None:
        """Deletes the folder and all in it."""
        shutil.rmtree(self.root, ignore_errors=True)
