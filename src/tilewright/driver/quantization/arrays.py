"""Arrays in files, read a few rows at a time: the data need not fit in memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tilewright.driver.tvmc.errors import TVMCException

Array = np.ndarray[Any, Any]

UNREADABLE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What NumPy, and the zip files under it, raise for files that are damaged."""
SUFFIX = ".npy"


@dataclass(frozen=True)
class StoredArray:
    """An array in an ``.npy`` file, or in the member of an ``.npz`` file."""

    path: Path
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_columns: bool

    def rows(self, count: int) -> Iterator[Array]:
        """So many rows at a time, as long as there are that many."""
        whole = len(self) // count
        if self.in_columns:
            # Stored column by column: there is no other way than to read all of it.
            with _opened(self.path, self.member) as stream:
                everything = np.lib.format.read_array(stream, allow_pickle=False)
            for place in range(whole):
                yield everything[place * count : (place + 1) * count]
            return
        shape = (count, *self.shape[1:])
        size = int(np.prod(shape)) * self.dtype.itemsize
        with _opened(self.path, self.member) as stream:
            _header(stream)
            for _ in range(whole):
                content = stream.read(size)
                if len(content) != size:
                    raise TVMCException(f"{self.path} is damaged: {self.member or 'it'} ends early")
                yield np.frombuffer(content, self.dtype).reshape(shape)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0


@contextmanager
def _opened(path: Path, member: str) -> Iterator[IO[bytes]]:
    if not member:
        with path.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(path) as archive, archive.open(member + SUFFIX) as stream:
        yield stream


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)


def stored_arrays(path: Path) -> dict[str, StoredArray]:
    """The arrays of a file by name; that of an ``.npy`` file has none."""
    try:
        names = [""]
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                names = [one.removesuffix(SUFFIX) for one in archive.namelist() if one.endswith(SUFFIX)]
        found = {}
        for name in names:
            with _opened(path, name) as stream:
                shape, in_columns, dtype = _header(stream)
            if dtype.hasobject:
                raise TVMCException(f"{path} has Python objects, which are not read: store numbers")
            found[name] = StoredArray(path, name, shape, dtype, in_columns)
        return found
    except UNREADABLE as problem:
        raise TVMCException(f"{path} cannot be read: {problem}") from problem
