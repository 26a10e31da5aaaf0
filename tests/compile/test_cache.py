"""Compiled units on disk: found again, never trusted, never in the way."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from pathlib import Path

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.compile import cache, compile_loops, link
from tilewright.compile.cache import find_shortcut, find_unit, folder, prune, store_shortcut, store_unit
from tilewright.compile.unit import Unit, compile_unit, split
from tilewright.support.errors import TilewrightError

TARGET = tvm.target.Target("llvm")


def loops(addend: float, name: str = "f") -> tvm.IRModule:
    """A function that adds a number."""
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + addend, name="b")
    return tvm.lower(te.create_schedule(b.op), [a, b], name=name)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "code"


def test_units_are_found_by_their_loops(place: Path) -> None:
    """The second time nothing is compiled; other loops, other names and other targets are other units."""
    first, known = compile_loops(loops(1.0), TARGET, TARGET)
    again, known_again = compile_loops(loops(1.0), TARGET, TARGET)
    assert (known, known_again) == (False, True)
    assert again.to_bytes() == first.to_bytes()
    other = tvm.target.Target("llvm -mcpu=generic")
    for changed, target in ((loops(2.0), TARGET), (loops(1.0, "g"), TARGET), (loops(1.0), other)):
        assert compile_loops(changed, target, target)[1] is False
    assert len(list(place.rglob("*.unit"))) == 4


def test_a_shortcut_leads_to_a_unit_without_its_loops(place: Path) -> None:
    """It is stored with the unit."""
    unit, _ = compile_loops(loops(1.0), TARGET, TARGET, shortcut="from here")
    key = find_shortcut("from here")
    assert key is not None and find_shortcut("from there") is None
    found = find_unit(key)
    assert found is not None and found.to_bytes() == unit.to_bytes()


def test_the_key_names_what_makes_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of LLVM makes other code of the same loops."""
    parts = split({TARGET: loops(1.0)}, TARGET)
    before = parts.digest()
    assert before == split({TARGET: loops(1.0)}, TARGET).digest()
    monkeypatch.setattr("llvmlite.binding.llvm_version_info", (99, 0, 0))
    assert parts.digest() != before


def test_what_is_damaged_is_missing(place: Path) -> None:
    """Cut short, changed, or not a unit at all."""
    unit = compile_unit(loops(1.0), TARGET)
    store_unit("key", unit)
    (path,) = place.rglob("*.unit")
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:100] + b"x" + whole[101:], b"x" * 1000):
        path.write_bytes(damaged)
        assert find_unit("key") is None
        with pytest.raises((TilewrightError, ValueError, KeyError, TypeError)):
            Unit.from_bytes(damaged)
    path.write_bytes(whole)
    assert find_unit("key") is not None


def test_it_is_the_users_own(place: Path) -> None:
    """Folders are made for this user only; one that others may write to is not used, with one warning."""
    store_unit("key", compile_unit(loops(1.0), TARGET))
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o777)
    cache._own_folder.cache_clear()
    with pytest.warns(RuntimeWarning, match="others may write to"):
        assert find_unit("key") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_unit("key") is None
    place.chmod(0o700)
    cache._own_folder.cache_clear()
    assert find_unit("key") is not None


def test_without_a_folder_everything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file is in the folder's place; without a home, the cache is among the temporary files."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="compiled code is not kept"):
        unit, known = compile_loops(loops(1.0), TARGET, TARGET)
    assert not known and link([unit], TARGET).function_names == ("f",)
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    place = folder()
    assert place is not None and place.is_relative_to(tmp_path / "temporary")
    assert compile_loops(loops(1.0), TARGET, TARGET)[1] is False


def test_it_is_pruned_when_it_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never outgrows its limit by much, and what was used last stays."""
    unit = compile_unit(loops(1.0), TARGET)
    size = len(unit.to_bytes())
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", str(10 * size))
    for number in range(40):
        store_unit(f"key {number}", unit)
        if number >= 5:
            assert find_unit("key 0") is not None
        for path in place.rglob("*.unit"):
            # Time passes between two uses.
            status = path.stat()
            os.utime(path, (status.st_atime - 10, status.st_mtime - 10))
    assert sum(path.stat().st_size for path in place.rglob("*.unit")) <= 11 * size
    assert find_unit("key 39") is not None and find_unit("key 1") is None
    store_shortcut("short", "key 39")
    assert prune(0) > 0 and not list(place.rglob("*.key"))


def _write(number: int) -> None:
    unit = compile_unit(loops(1.0), TARGET)
    for turn in range(20):
        store_unit(f"shared {turn}", unit)
        assert find_unit(f"shared {turn}") is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the children share this module by forking")
def test_two_processes_write_at_once(place: Path) -> None:
    """Neither sees half of what the other writes."""
    compile_unit(loops(1.0), TARGET)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_write, args=(number,)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert len(list(place.rglob("*.unit"))) == 20 and not list(place.rglob("*.tmp*"))
