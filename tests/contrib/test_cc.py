"""Linking through contrib.cc."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tilewright.contrib import cc
from tilewright.support.cbuild import CompilerError, find_compiler

pytestmark = pytest.mark.skipif(not Path("/usr/bin/cc").exists(), reason="there is no C compiler here")


@pytest.fixture
def answer(tmp_path: Path) -> str:
    """An object file with one function."""
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }")
    find_compiler().run(["-fPIC", "-c", tmp_path / "answer.c", "-o", tmp_path / "answer.o"])
    return str(tmp_path / "answer.o")


def test_shared_library(answer: str, tmp_path: Path) -> None:
    """Objects become a library that loads; one object need not be in a list; the compiler can be chosen."""
    cc.create_shared(str(tmp_path / "one.so"), answer)
    assert ctypes.CDLL(str(tmp_path / "one.so")).answer() == 42
    cc.create_shared(str(tmp_path / "two.so"), [answer], options=["-Wl,-soname,two"], cc="cc")
    assert ctypes.CDLL(str(tmp_path / "two.so")).answer() == 42


def test_executable(answer: str, tmp_path: Path) -> None:
    """Objects become a program that runs."""
    (tmp_path / "main.c").write_text("int answer(void); int main(void) { return answer(); }")
    cc.create_executable(str(tmp_path / "program"), [str(tmp_path / "main.c"), answer])
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 42


def test_failure_leaves_nothing(answer: str, tmp_path: Path) -> None:
    """A linker's failure is an error with its words, and no file."""
    with pytest.raises(CompilerError, match="no-such-option"):
        cc.create_shared(str(tmp_path / "bad.so"), answer, options=["--no-such-option"])
    assert not (tmp_path / "bad.so").exists()


def test_target_of_a_compiler() -> None:
    """A compiler is asked for its triple; one that does not answer gives None."""
    triple = cc.get_target_by_dump_machine("cc")()
    assert triple is not None and triple.count("-") >= 2
    assert cc.get_target_by_dump_machine("no-such-compiler")() is None
    assert cc.get_target_by_dump_machine("")() is None


def test_cross_compiler(answer: str, tmp_path: Path) -> None:
    """A compiler's name or a function becomes an fcompile with its options, files, format and triple."""
    by_name: Any = cc.cross_compiler("cc", options=["-Wl,-soname,x"])
    by_name(str(tmp_path / "named.so"), [answer])
    assert ctypes.CDLL(str(tmp_path / "named.so")).answer() == 42
    assert (
        by_name.output_format == "so" and by_name.get_target_triple() == cc.get_target_by_dump_machine("cc")()
    )

    seen: list[Any] = []

    def link(output: str, objects: list[str], options: list[str]) -> None:
        seen.append((output, objects, options))

    wrapped: Any = cc.cross_compiler(link, ["-a"], "dll", lambda: "arm-none-eabi", ["extra.o"])
    wrapped("out", ["in.o"], options=["-b"])
    assert seen == [("out", ["in.o", "extra.o"], ["-a", "-b"])]
    assert wrapped.output_format == "dll" and wrapped.get_target_triple() == "arm-none-eabi"
    assert not hasattr(cc.cross_compiler(link), "get_target_triple")
    with pytest.raises(TypeError, match="not int"):
        cc.cross_compiler(3)  # type: ignore[arg-type]
