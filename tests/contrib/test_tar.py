"""Archives of files."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor, tar, utils


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


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_may_not_unpack_to_more_than_the_limit(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compressed zeros take no room in the archive; the limit is that of packages."""
    path = tmp_path / "zeros.tar"
    with tarfile.open(path, mode) as archive:
        for number in range(4):
            entry = tarfile.TarInfo(f"zeros{number}")
            entry.size = 1 << 20
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    tar.untar(str(path), str(tmp_path / "all"))
    assert sum(each.stat().st_size for each in (tmp_path / "all").iterdir()) == 4 << 20
    monkeypatch.setenv("TILEWRIGHT_UNPACK_LIMIT", str(3 << 20))
    with pytest.raises(ValueError, match="TILEWRIGHT_UNPACK_LIMIT"):
        tar.untar(str(path), str(tmp_path / "some"))
    assert sum(each.stat().st_size for each in (tmp_path / "some").iterdir()) <= 3 << 20


def test_nothing_is_written_outside_of_the_directory(tmp_path: Path) -> None:
    """Whatever a member is called."""
    path = tmp_path / "escape.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    with pytest.raises(ValueError, match="outside"):
        tar.untar(str(path), str(tmp_path / "in"))
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", ["model.tar", "model"])
def test_modules_are_packed(name: str, tmp_path: Path) -> None:
    """As ``fcompile`` of ``export_library``, whatever the name of the file: what a module imports is in the archive,
    and it is loaded as the one that is written without."""
    x = relay.var("x", shape=(4,))
    weight = np.arange(4, dtype="float32")
    function = relay.Function([x], x * relay.const(weight))
    library = relay.build(tvm.IRModule.from_expr(function), "llvm")
    packed, plain = tmp_path / name, tmp_path / "plain.tar"
    library.export_library(str(packed), fcompile=tar.tar, workspace_dir=str(tmp_path))
    library.export_library(str(plain))
    with tarfile.open(packed) as one, tarfile.open(plain) as other:
        assert sorted(one.getnames()) == sorted(other.getnames())
    loaded = tvm.runtime.load_module(str(packed), "tar")
    model = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    model.run(x=np.full(4, 2, "float32"))
    np.testing.assert_array_equal(model.get_output(0).numpy(), 2 * weight)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([name, "plain.tar"])
