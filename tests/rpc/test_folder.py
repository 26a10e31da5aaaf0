"""No path leads out of a session's folder."""

import os

import pytest

from tilewright.rpc.folder import Folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "session").mkdir()
    (tmp_path / "secret").write_text("secret")
    return Folder(tmp_path / "session", most_bytes=1000)


def write(folder, path, content=b"content"):
    with folder.writing(path, len(content)) as file:
        file.write(content)


def read(folder, path):
    with folder.reading(path) as (file, size):
        return file.read(size)


def test_files_are_written_read_listed_and_removed(folder):
    write(folder, "a/b/c.so", b"one")
    write(folder, "a/b/c.so", b"two")
    assert read(folder, "a/b/c.so") == b"two"
    assert folder.names() == ["a/"] and folder.names("a/b") == ["c.so"]
    folder.remove("a/b/c.so")
    assert folder.names("a/b") == []
    with pytest.raises(FileNotFoundError):
        read(folder, "a/b/c.so")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "",
        ".",
        "a//b",
        "a\\b",
        "c:x",
        "a\0b",
        "x" * 1025,
        "a/" * 16 + "b",
    ],
)
def test_paths_that_could_lead_out_are_refused(folder, path):
    for use in (read, write, lambda at, path: at.remove(path)):
        with pytest.raises(PermissionError):
            use(folder, path)


def test_symbolic_links_are_not_followed(folder, tmp_path):
    """Wherever they stand in a path."""
    os.symlink(tmp_path / "secret", folder.root / "link")
    os.symlink(tmp_path, folder.root / "out")
    for path in ("link", "out/secret"):
        for use in (read, write, lambda at, path: at.remove(path) if path != "link" else read(at, path)):
            with pytest.raises(PermissionError):
                use(folder, path)
    with pytest.raises(PermissionError):
        folder.names("out")
    assert folder.names() == []
    assert (tmp_path / "secret").read_text() == "secret"


def test_only_regular_files_are_files(folder):
    os.mkfifo(folder.root / "pipe")
    (folder.root / "sub").mkdir()
    for path in ("pipe", "sub"):
        with pytest.raises(PermissionError):
            read(folder, path)
        with pytest.raises(PermissionError):
            write(folder, path)


def test_a_failed_upload_leaves_the_old_file(folder):
    write(folder, "file", b"old")

    def upload():
        with folder.writing("file", 3) as file:
            file.write(b"ne")
            raise RuntimeError("the client is gone")

    with pytest.raises(RuntimeError):
        upload()
    assert read(folder, "file") == b"old"
    assert sorted(os.listdir(folder.root)) == ["file"]


def test_a_full_folder_refuses_more(folder):
    with pytest.raises(OSError, match="no room"):
        write(folder, "file", b"x" * 1001)
