"""Archives of files."""

from pathlib import Path

import pytest

from tilewright.contrib import tar, utils


def test_files_come_back(tmp_path: Path) -> None:
    """Files lie in the archive under their last names; archives in a list are replaced by what they hold."""
    (tmp_path / "deep").mkdir()
    one, two = tmp_path / "one.txt", tmp_path / "deep" / "two.txt"
    one.write_text("1")
    two.write_text("2")
    archive = str(tmp_path / "both.tar")
    tar.tar(archive, [str(one), str(two)])
    tar.untar(archive, str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["one.txt", "two.txt"]
    folder = utils.tempdir()
    found = tar.normalize_file_list_by_unpacking_tars(folder, [str(one), archive])
    assert [Path(path).read_text() for path in found] == ["1", "1", "2"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """One would replace the other when the archive is read."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text(folder)
    with pytest.raises(ValueError, match="same"):
        tar.tar(str(tmp_path / "x.tar"), [str(tmp_path / "a" / "same"), str(tmp_path / "b" / "same")])
