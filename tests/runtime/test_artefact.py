"""Stored modules, archives and checksums, as bytes."""

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.artefact import (
    Archive,
    StoredModule,
    append_checksum,
    check_checksum,
    pack_imports,
    read_members,
    unpack_imports,
)
from tilewright.support.errors import TilewrightError

stored = st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=30)), max_size=5).map(
    lambda items: [StoredModule(key, content, index - 1) for index, (key, content) in enumerate(items)]
)


@given(stored)
def test_imports_round_trip(modules: list[StoredModule]) -> None:
    """What is packed comes out again, in order."""
    assert unpack_imports(pack_imports(modules), "it") == modules


@given(stored, st.data())
def test_mutated_imports_are_errors_or_modules(modules: list[StoredModule], data: st.DataObject) -> None:
    """Whatever happens to the block, reading it gives modules or an error about it, and nothing else."""
    block = bytearray(pack_imports(modules))
    for _ in range(data.draw(st.integers(1, 4))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(block)))
    found: list[StoredModule] = []
    message = "it is damaged"
    try:
        found = unpack_imports(bytes(block[:cut]), "it")
    except TilewrightError as error:
        message = str(error)
    assert message.startswith("it is damaged")
    assert sum(len(module.content) for module in found) <= cut


def test_archive_round_trip(tmp_path: Path) -> None:
    """An archive has what was put in, and the same content gives the same bytes."""
    archive = Archive([b"one", b"two"], ["f", "g"], ["avx2"], "x86_64-linux-gnu", b"imports")
    archive.write(tmp_path / "a.tar")
    archive.write(tmp_path / "b.tar")
    assert Archive.read(tmp_path / "a.tar") == archive
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_archive_members_are_checked(tmp_path: Path) -> None:
    """A member that is not what the manifest says is an error that names it."""
    Archive([b"machine code"]).write(tmp_path / "a.tar")
    content = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(content.replace(b"machine code", b"machine c0de"))
    with pytest.raises(ValueError, match=r"lib0\.o does not have the checksum"):
        Archive.read(tmp_path / "a.tar")
    (tmp_path / "a.tar").write_bytes(content.replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(ValueError, match="format 9"):
        Archive.read(tmp_path / "a.tar")
    (tmp_path / "a.tar").write_bytes(content.replace(b'"objects": [', b'"objects": {'))
    with pytest.raises(ValueError, match="manifest is not readable"):
        Archive.read(tmp_path / "a.tar")


def test_a_lost_manifest_is_missed(tmp_path: Path) -> None:
    """Objects alone are a plain archive; with anything else beside them, there must be a manifest that vouches."""
    plain, renamed = tmp_path / "plain.tar", tmp_path / "renamed.tar"
    Archive([b"machine code"]).write(renamed)
    with tarfile.open(renamed) as archive:
        members = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    for path, names in ((plain, ["lib0.o"]), (renamed, ["lib0.o", "manifest.json"])):
        with tarfile.open(path, "w") as archive:
            for name in names:
                entry = tarfile.TarInfo(name.replace("manifest", "manifesT"))
                entry.size = len(members[name])
                archive.addfile(entry, io.BytesIO(members[name]))
    assert Archive.read(plain).objects == [b"machine code"]
    with pytest.raises(ValueError, match=r"has manifesT\.json beside its objects, and no manifest"):
        Archive.read(renamed)


def test_checksum_after_a_file(tmp_path: Path) -> None:
    """A checksum is found at the end of a file; a changed file is refused, one without a checksum passes."""
    path = tmp_path / "file"
    path.write_bytes(b"content" * 100)
    check_checksum(path.read_bytes(), "it")
    append_checksum(path)
    content = path.read_bytes()
    check_checksum(content, "it")
    with pytest.raises(ValueError, match="it is damaged"):
        check_checksum(b"X" + content[1:], "it")
    with pytest.raises(ValueError, match="it is damaged"):
        check_checksum(content[1:], "it")


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_an_archive_that_grows_without_measure(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file that unpacks to a large one is refused before it is in memory, unless the user says otherwise."""
    path = tmp_path / "model.tar"
    with tarfile.open(path, mode) as archive:
        entry = tarfile.TarInfo("lib0.o")
        entry.size = 1 << 22
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    assert len(read_members(path)["lib0.o"]) == 1 << 22
    monkeypatch.setenv("TILEWRIGHT_UNPACK_LIMIT", str(1 << 20))
    with pytest.raises(TilewrightError, match=r"unpacks to more than 1 MB.*TILEWRIGHT_UNPACK_LIMIT"):
        read_members(path)


def test_a_header_that_grows_without_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the extended header of a member."""
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("lib0.o")
        entry.pax_headers = {"comment": "x" * (1 << 22)}
        archive.addfile(entry)
    monkeypatch.setenv("TILEWRIGHT_UNPACK_LIMIT", str(1 << 20))
    with pytest.raises(TilewrightError, match="unpacks to more than 1 MB"):
        read_members(path)


def test_the_limit_that_is_there_without_asking(tmp_path: Path) -> None:
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        entry = tarfile.TarInfo("lib0.o")
        entry.size = 300 << 20
        with open("/dev/zero", "rb") as zeros:
            archive.addfile(entry, zeros)
    with pytest.raises(TilewrightError, match="unpacks to more than 256 MB"):
        read_members(path)
