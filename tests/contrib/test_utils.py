"""Temporary folders, locks, paths."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilewright.contrib import utils


def test_folder_goes_with_the_object() -> None:
    """A folder exists while its object does, with what is put into it."""
    folder = utils.tempdir()
    Path(folder.relpath("file")).write_text("content")
    assert folder.listdir() == ["file"] and (folder / "file").read_text() == "content"
    path = folder.path
    folder.remove()
    assert not os.path.exists(path)
    folder.remove()
    with utils.tempdir() as another:
        kept = another.path
        assert os.path.isdir(kept)
    assert not os.path.exists(kept)


def test_custom_path(tmp_path: Path) -> None:
    """A folder can be made at a path that does not exist yet."""
    folder = utils.tempdir(str(tmp_path / "mine"))
    assert os.path.isdir(tmp_path / "mine")
    with pytest.raises(FileExistsError):
        utils.tempdir(str(tmp_path / "mine"))
    del folder
    assert not os.path.exists(tmp_path / "mine")


def test_kept_for_debugging(tmp_path: Path) -> None:
    """A folder that is kept outlives its object."""
    with utils.TempDirectory.set_keep_for_debug():
        folder = utils.tempdir(str(tmp_path / "kept"))
    folder.remove()
    del folder
    assert os.path.isdir(tmp_path / "kept")


def test_kept_folders_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one process lie beside each other, in order, under the time at which the first was made."""
    monkeypatch.setattr(utils.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(utils.TempDirectory, "_debug_parent", None)
    monkeypatch.setattr(utils.TempDirectory, "_debug_count", 0)
    with utils.TempDirectory.set_keep_for_debug():
        folders = [Path(utils.tempdir().temp_dir) for _ in range(2)]
    assert [one.name for one in folders] == ["00000", "00001"] and folders[0].parent == folders[1].parent
    assert all(one.is_dir() for one in folders) and "___" in folders[0].parent.name


def test_removed_at_exit() -> None:
    """What is left when the interpreter ends is removed, and nothing new can be made then."""
    program = (
        "import atexit\n"
        "def late():\n"
        "    try:\n        utils.tempdir()\n"
        "    except utils.DirectoryCreatedPastAtExit:\n        print('late')\n"
        "atexit.register(late)\n"
        "from tilewright.contrib import utils\n"
        "folder = utils.tempdir()\nprint(folder.path)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    path, late = done.stdout.split()
    assert late == "late" and not os.path.exists(path)


def test_file_lock(tmp_path: Path) -> None:
    """The lock between processes is held until it is released."""
    path = str(tmp_path / "lock")
    lock = utils.filelock(path)
    program = f"from tilewright.contrib import utils; utils.filelock({path!r}); print('held')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    )
    threading.Event().wait(1.0)
    assert other.poll() is None
    lock.release()
    assert other.communicate(timeout=20)[0] == "held\n"
    with utils.filelock(path) as again:
        assert again.lock_file is not None
    assert again.lock_file is None


def test_paths() -> None:
    """Source files are known by their suffix; programs are found on the PATH."""
    assert utils.is_source_path("a/b.cc") and utils.is_source_path("k.cu") and not utils.is_source_path("a.o")
    assert os.path.exists(utils.which("python3"))
    with pytest.raises(RuntimeError, match="no-such-program"):
        utils.which("no-such-program")


def test_folders_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the interpreter removes all folders that are left; none can be made from then on."""
    monkeypatch.setattr(utils.TempDirectory, "TEMPDIRS", set())
    first, second = utils.tempdir(), utils.tempdir()
    (first / "file").write_text("content")
    paths = [first.path, second.path]
    second.remove()
    left = utils.TempDirectory.TEMPDIRS
    assert left == {paths[0]}
    utils.TempDirectory.remove_tempdirs()
    assert not any(map(os.path.exists, paths))
    with pytest.raises(utils.DirectoryCreatedPastAtExit):
        utils.tempdir()
    first.remove()
    utils.TempDirectory.remove_tempdirs()
