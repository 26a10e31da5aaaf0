"""A C program that runs an exported library through the runtime, with no Python in the process."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tilewright.runtime.loading import ObjectModule
from tilewright.support.cbuild import SOURCES, find_compiler, runtime_sources


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with the runtime linked in."""
    binary = tmp_path_factory.mktemp("deploy") / "deploy"
    source = Path(__file__).with_name("csrc") / "deploy.c"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-DTILEWRIGHT_STATIC", "-I", SOURCES]
    find_compiler().run([*flags, source, *runtime_sources(), "-o", binary, "-pthread", "-ldl", "-lm"])
    return binary


def test_runs_a_graph(program: Path, library_path: Path) -> None:
    """The program loads the library, runs a graph of two nodes and sees its errors."""
    done = subprocess.run([program, library_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 4 5 6 ", "")


def test_says_what_is_missing(program: Path, compile_kernels: Any, tmp_path: Path) -> None:
    """A library that does not exist, or needs a CPU feature the machine lacks, is refused with the reason."""
    done = subprocess.run([program, tmp_path / "absent.so"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "cannot load" in done.stderr
    path = tmp_path / "needs.so"
    ObjectModule([compile_kernels('-DFEATURES="sse2,fma4"')], "kernels").export_library(str(path))
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "needs a CPU feature that this machine lacks: fma4" in done.stderr
