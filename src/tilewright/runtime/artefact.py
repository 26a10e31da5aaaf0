"""What travels in an exported file beside machine code.

*Imported modules* are stored as one block of bytes: the tree of modules, each with its kind and its own bytes. *A tar
archive* holds the objects, that block and a manifest, which names the functions and the CPU features and has a checksum
of every member. *A model library* (see ``tilewright.micro``) is such an archive with folders, and with its manifest in
``metadata.json``. *A shared library* gets a checksum after its end, where the system's loader does not look. So a file
that was damaged on its way is refused before any of it runs.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.runtime.failure import failure
from tilewright.support.options import unpack_limit

_IMPORTS_MAGIC = b"TWIMPORT"
_CHECKSUM_MAGIC = b"\0tilewright-sha256"
_MANIFEST = "manifest.json"
_METADATA = "metadata.json"
_IMPORTS = "imports.bin"
_MOST_MODULES = 1 << 16


@dataclass(frozen=True)
class StoredModule:
    """A module as data: its kind, its bytes, and the index of its importer (-1: the root)."""

    type_key: str
    content: bytes | memoryview
    parent: int


def pack_imports(modules: list[StoredModule]) -> bytes:
    """One block of bytes for all of them."""
    parts: list[bytes | memoryview] = [_IMPORTS_MAGIC, struct.pack("<I", len(modules))]
    for module in modules:
        key = module.type_key.encode()
        parts += [struct.pack("<iIQ", module.parent, len(key), len(module.content)), key, module.content]
    return b"".join(parts)


def unpack_imports(block: bytes | memoryview, what: str) -> list[StoredModule]:
    """The reverse; never reads outside the block, whatever its content. From a view, the parts are views too."""
    modules: list[StoredModule] = []
    at = len(_IMPORTS_MAGIC) + 4
    if block[: len(_IMPORTS_MAGIC)] != _IMPORTS_MAGIC or len(block) < at:
        raise failure("ValueError", f"{what} is damaged: its imported modules are not readable")
    (count,) = struct.unpack_from("<I", block, at - 4)
    if count > _MOST_MODULES:
        raise failure("ValueError", f"{what} is damaged: it says it has {count} imported modules")
    for index in range(count):
        if at + 16 > len(block):
            raise failure("ValueError", f"{what} is damaged: imported module {index} is cut short")
        parent, key_size, size = struct.unpack_from("<iIQ", block, at)
        at += 16
        if key_size + size > len(block) - at or not -1 <= parent < index:
            raise failure(
                "ValueError", f"{what} is damaged: imported module {index} is cut short or out of order"
            )
        key = bytes(block[at : at + key_size]).decode(errors="replace")
        modules.append(StoredModule(key, block[at + key_size : at + key_size + size], parent))
        at += key_size + size
    return modules


@dataclass
class Archive:
    """The content of an exported tar archive."""

    objects: list[bytes]
    functions: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    triple: str = ""
    imports: bytes = b""
    sources: list[bytes] = field(default_factory=list)
    """C source, which a model library may have instead of objects."""
    target: str = ""
    """What the code was made for, as a target; empty where that is not known."""

    def members(self) -> dict[str, bytes]:
        """The files of the archive by name, with a manifest that describes the others."""
        members = {f"lib{index}.o": code for index, code in enumerate(self.objects)}
        if self.imports:
            members[_IMPORTS] = self.imports
        manifest = {
            "format": 1,
            "objects": [name for name in members if name.endswith(".o")],
            "functions": self.functions,
            "features": self.features,
            "triple": self.triple,
            "target": self.target,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
        }
        return {_MANIFEST: json.dumps(manifest, indent=1).encode(), **members}

    def write(self, path: Path) -> None:
        """Writes the archive: the same bytes for the same content."""
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in self.members().items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Reads an archive that Tilewright wrote, or any tar of objects, into memory; nothing is written to disk."""
        members = read_members(path)
        if _METADATA in members:
            return cls._of_model_library(members, path)
        manifest = _parse_manifest(members.pop(_MANIFEST, None), members, path)
        names = manifest.get("objects") or sorted(name for name in members if name.endswith((".o", ".obj")))
        others = sorted(set(members) - set(names))
        if names and others and not manifest:
            # An archive that lost its manifest must not pass for a plain one, whose content is not checked.
            raise failure(
                "ValueError", f"{path} has {others[0]} beside its objects, and no manifest that says why"
            )
        missing = [name for name in names if name not in members]
        if missing or not names:
            raise failure(
                "ValueError", f"{path} has no object code: {', '.join(missing) or 'no .o file'} in it"
            )
        return cls(
            [members[name] for name in names],
            list(manifest.get("functions", ())),
            list(manifest.get("features", ())),
            str(manifest.get("triple", "")),
            members.get(_IMPORTS, b""),
            target=str(manifest.get("target", "")),
        )

    @classmethod
    def _of_model_library(cls, members: dict[str, bytes], path: Path) -> Archive:
        metadata = check_model_library(members, path)
        if not metadata["functions"]:
            raise failure(
                "ValueError",
                f"{path} has no functions to call from here: its interface is {metadata.get('interface')!r}. "
                "Link its code into a program",
            )
        host = "codegen/host/"
        objects = [name for name in sorted(members) if name.startswith(f"{host}lib/") and name.endswith(".o")]
        sources = [name for name in sorted(members) if name.startswith(f"{host}src/") and name.endswith(".c")]
        return cls(
            [members[name] for name in objects],
            list(metadata["functions"]),
            list(metadata["features"]),
            str(metadata.get("triple", "")),
            sources=[members[name] for name in sources],
            target=str(metadata.get("target", "")),
        )


_LEAST_LIMIT = 256 << 20
_MOST_COMPRESSION = 20
"""Archives are not compressed when we write them; weights and machine code shrink to a tenth at the very best."""

_COMPRESSIONS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))


class _TooLarge(Exception):
    """An archive is larger than the limit."""


class _Unpacked(io.RawIOBase):
    """The content of a file, unpacked where it is compressed, of which no more than ``limit`` bytes are read."""

    def __init__(self, path: Path, limit: int) -> None:
        with path.open("rb") as file:
            start = file.read(8)
        opened = next((how for mark, how in _COMPRESSIONS if start.startswith(mark)), open)
        self._file: Any = opened(path, "rb")
        self._left = limit

    def expect(self, size: int) -> None:
        """Raises an error if this many more bytes would exceed the limit."""
        if size > self._left:
            raise _TooLarge

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if size < 0:
            size = self._left + 1
        self.expect(size)
        content: bytes = self._file.read(size)
        self._left -= len(content)
        return content

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


def read_members(path: Path) -> dict[str, bytes]:
    """Every plain file of an archive, in memory; names lose a leading ``./``."""
    members: dict[str, bytes] = {}
    with _opened(path) as (content, archive):
        for entry in archive:
            # A sparse member is larger than what is stored of it.
            content.expect(entry.size if entry.isfile() else 0)
            handle = archive.extractfile(entry) if entry.isfile() else None
            if handle is not None:
                members[entry.name.removeprefix("./")] = handle.read()
    return members


def extract_members(path: Path, folder: Path) -> None:
    """Write the members of an archive into a folder, and nothing outside it."""
    with _opened(path) as (content, archive):
        for entry in archive:
            content.expect(entry.size if entry.isfile() else 0)
            archive.extract(entry, folder, filter="data")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[_Unpacked, tarfile.TarFile]]:
    """An archive; unpacks no more than an archive of its size should hold."""
    limit = 0
    try:
        limit = unpack_limit() or max(_LEAST_LIMIT, _MOST_COMPRESSION * path.stat().st_size)
        with _Unpacked(path, limit) as content, tarfile.open(fileobj=content, mode="r:") as archive:
            yield content, archive
    except _TooLarge:
        raise failure(
            "ValueError",
            f"{path} unpacks to more than {limit >> 20} MB, more than an archive of its size should hold; if you "
            "trust it, set TILEWRIGHT_UNPACK_LIMIT to the bytes that it may have",
        ) from None
    except (
        tarfile.TarError,
        EOFError,
        ValueError,
        OverflowError,
        OSError,
        zlib.error,
        lzma.LZMAError,
    ) as error:
        raise failure("ValueError", f"{path} is not a readable tar archive: {error}") from error


def check_model_library(members: dict[str, bytes], path: Path) -> dict[str, Any]:
    """The metadata of a model library, whose members must be the ones it was written with."""
    rest = dict(members)
    metadata = _parse_json(rest.pop(_METADATA, b""), path, ("functions", "features"))
    _check_sums(metadata, rest, path)
    return metadata


def _parse_manifest(content: bytes | None, members: Mapping[str, bytes], path: Path) -> dict[str, Any]:
    """The manifest with every checksum compared; empty for an archive that has none."""
    if content is None:
        return {}
    manifest = _parse_json(content, path, ("objects", "functions", "features"))
    if manifest.get("format") != 1:
        raise failure(
            "ValueError",
            f"{path} has format {manifest.get('format')!r}; this version of Tilewright reads format 1",
        )
    _check_sums(manifest, members, path)
    return manifest


def _parse_json(content: bytes, path: Path, lists: Sequence[str]) -> dict[str, Any]:
    """A manifest, in which these names are lists of texts."""
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise failure("ValueError", f"{path} is damaged: its manifest is not readable: {error}") from error
    if not isinstance(manifest, dict) or not all(_is_text_list(manifest.get(name)) for name in lists):
        raise failure("ValueError", f"{path} is damaged: its manifest is not complete")
    return manifest


def _check_sums(manifest: Mapping[str, Any], members: Mapping[str, bytes], path: Path) -> None:
    """An error unless the members are those that the manifest has checksums of, unchanged."""
    sums = manifest.get("sha256")
    if not isinstance(sums, dict):
        raise failure("ValueError", f"{path} is damaged: its manifest has no checksums")
    missing = [str(name) for name in sums if name not in members]
    if missing:
        raise failure("ValueError", f"{path} is damaged: {', '.join(missing)} is not in it")
    for name, content in members.items():
        if sums.get(name) != hashlib.sha256(content).hexdigest():
            raise failure(
                "ValueError", f"{path} is damaged: {name} does not have the checksum it was written with"
            )


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def append_checksum(path: Path) -> None:
    """Adds a checksum of the whole file after its end."""
    content = path.read_bytes()
    with path.open("ab") as file:
        file.write(_CHECKSUM_MAGIC + hashlib.sha256(content).digest())


def check_checksum(content: bytes | memoryview, what: str) -> None:
    """An error for a file whose content is not what its checksum was made of; a file without one passes."""
    size = len(_CHECKSUM_MAGIC) + 32
    body, mark, digest = content[:-size], content[-size:-32], content[-32:]
    if mark == _CHECKSUM_MAGIC and hashlib.sha256(body).digest() != digest:
        raise failure("ValueError", f"{what} is damaged: it does not have the checksum it was written with")
