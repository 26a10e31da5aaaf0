"""Tar archives, with TVM's function names."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.contrib.utils import TempDirectory
from tilewright.runtime.artefact import extract_members


def tar(output: str, files: str | Sequence[str]) -> None:
    """Writes an archive of files, each under its last name. Two files of one name are an error."""
    paths = [Path(each) for each in ([files] if isinstance(files, str) else files)]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        raise ValueError(f"an archive cannot hold two files of one name: {', '.join(sorted(names))}")
    with tarfile.open(output, "w") as archive:
        for path in paths:
            archive.add(path, path.name)


tar.output_format = "tar"  # type: ignore[attr-defined]  # what export_library asks of a function that packs files


def untar(tar_file: str, directory: str) -> None:
    """Writes the files of an archive into a directory. Nothing is written outside it, and no more than an archive of
    its size should hold (``TILEWRIGHT_UNPACK_LIMIT``)."""
    extract_members(Path(tar_file), Path(directory))


def normalize_file_list_by_unpacking_tars(temp: TempDirectory, file_list: Sequence[str]) -> list[str]:
    """The files of a list, with each archive replaced by its files."""
    found: list[str] = []
    for number, path in enumerate(file_list):
        if not path.endswith(".tar"):
            found.append(path)
            continue
        folder = Path(temp.relpath(f"files{number}"))
        folder.mkdir()
        untar(path, str(folder))
        found.extend(str(each) for each in sorted(folder.rglob("*")) if each.is_file())
    return found
