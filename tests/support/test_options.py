"""Environment variables."""

from pathlib import Path

import pytest

from tilewright.support import options


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("yes", True), ("0", False), ("off", False), ("", False), ("False", False)],
)
def test_flag(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    """A flag is on unless it says off."""
    monkeypatch.setenv("TILEWRIGHT_TEST_FLAG", value)
    assert options.flag("TILEWRIGHT_TEST_FLAG") is expected


def test_checks_are_on_in_tests() -> None:
    """The tests run with checks between passes."""
    assert options.CHECK is True


def test_cache_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explicit folder wins over the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    assert options.cache_dir() == Path("/somewhere/tilewright")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "/explicit")
    assert options.cache_dir() == Path("/explicit")


@pytest.mark.parametrize(
    ("value", "expected"), [("4", 4), ("0", None), ("-1", None), ("many", None), ("", None)]
)
def test_num_threads(monkeypatch: pytest.MonkeyPatch, value: str, expected: int | None) -> None:
    """Only a positive number counts."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", value)
    assert options.num_threads() == expected


def test_targets_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets are separated by semicolons."""
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm; cuda -arch=sm_80 ;")
    assert options.targets_for_tests() == ("llvm", "cuda -arch=sm_80")
    monkeypatch.delenv("TVM_TEST_TARGETS")
    assert options.targets_for_tests() == ()
