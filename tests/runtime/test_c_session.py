"""``tilewright_open``: a library with its model inside, run from C by the names of its inputs and outputs."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.runtime import export
from tilewright.runtime.elf_linker import links
from tilewright.support.cbuild import SOURCES, copy_runtime, find_compiler, runtime_sources
from tilewright.target import Target

NAMES = ["probabilities", "re/lu:0"]
WEIGHTS = (np.arange(24, dtype="float32").reshape(3, 8) - 12) / 50
EXECUTORS = ("graph", "vm", "aot")


def module(rows: Any) -> tvm.IRModule:
    """Two outputs whose names are no identifiers."""
    x = relay.var("x.1", shape=(rows, 8))
    w = relay.var("w", shape=(3, 8))
    hidden = relay.nn.dense(x, w)
    body = relay.Tuple([relay.nn.softmax(hidden), relay.nn.relu(relay.exp(x) - relay.const(2.0))])
    return tvm.IRModule.from_expr(relay.Function([x, w], body, attrs={"output_tensor_names": NAMES}))


def built(executor: str) -> Any:
    """The module, compiled; the virtual machine's with an open number of rows."""
    params = {"w": WEIGHTS}
    if executor == "vm":
        return relay.vm.compile(module(relay.Any()), "llvm", params=params)
    target = Target("llvm -interface-api=packed") if executor == "aot" else Target("llvm")
    return relay.build(module(4), target, params=params, executor=executor)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A library for each executor."""
    folder = tmp_path_factory.mktemp("libraries")
    for executor in EXECUTORS:
        built(executor).export_library(str(folder / f"{executor}.so"))
    return {executor: folder / f"{executor}.so" for executor in EXECUTORS}


@pytest.fixture(scope="module", params=["plain", "address", "thread"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the runtime linked in, under the sanitizers that this machine has."""
    binary = tmp_path_factory.mktemp("session") / "session"
    options = {
        "plain": ["-O2"],
        "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        "thread": ["-O1", "-g", "-fsanitize=thread"],
    }[request.param]
    source = Path(__file__).with_name("csrc") / "session.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-DTILEWRIGHT_STATIC", "-I", SOURCES]
    if sys.platform == "linux":  # whose linker replaces functions
        flags += ["-DFAIL_ALLOCATIONS", "-Wl,--wrap=malloc,--wrap=calloc,--wrap=posix_memalign"]
    try:
        compiler = find_compiler()
        compiler.run([*flags, *options, source, *runtime_sources(), "-o", binary, "-pthread", "-ldl", "-lm"])
    except OSError as problem:
        if request.param == "plain":
            raise
        pytest.skip(f"this machine cannot make {request.param} builds: {problem}")
    return binary


def ran(command: Sequence[Any]) -> list[str]:
    """The lines that a program prints; it must end well, and say nothing else."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("rows", [4, 1])
def test_c_gives_what_python_gives(
    executor: str, rows: int, program: Path, libraries: dict[str, Path]
) -> None:
    """Names, types, shapes and numbers are those of Python's session; a clone runs in another thread meanwhile."""
    if executor != "vm" and rows != 4:
        pytest.skip("its shape is fixed")
    *described, first, second, again, once_more = ran([program, libraries[executor], rows])
    open_rows = -1 if executor == "vm" else 4
    assert described == [
        f"input x.1 code2 bits32 {open_rows} 8",
        f"output probabilities code2 bits32 {open_rows} 3",
        f"output re/lu:0 code2 bits32 {open_rows} 8",
    ]
    assert (first, second) == (again, once_more)
    x = np.arange(rows * 8, dtype="float32").reshape(rows, 8) / 4
    expected = tvm.runtime.load_module(libraries[executor]).session().run({"x.1": x})
    assert list(expected) == NAMES
    for line, (name, values) in zip((first, second), expected.items(), strict=True):
        assert line.startswith(f"{name}: ")
        np.testing.assert_array_equal(np.array(line.split(": ")[1].split(), "float32"), np.ravel(values))
    powers = np.exp(x @ WEIGHTS.T)
    np.testing.assert_allclose(expected["probabilities"], powers / powers.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_errors(executor: str, program: Path, libraries: dict[str, Path]) -> None:
    """Each mistake is answered with what is wrong, in C's words."""
    rows, takes = ("?", "a multiple of 32") if executor == "vm" else ("4", "128")
    absent, *rest = ran([program, libraries[executor], "errors"])
    assert absent.startswith("OSError: cannot load absent.so")
    size = 12 if executor == "vm" else 48
    assert rest == [
        "ValueError: the input x.1 has no value yet",
        "RuntimeError: the model has no outputs yet: call tilewright_session_run first",
        "ValueError: the model has no input nothing; it has x.1",
        f"ValueError: the input x.1, float32[{rows}, 8], takes {takes} bytes; 3 are given",
        f"ValueError: the input x.1 is given float64[4]; it takes float32[{rows}, 8]",
        "ValueError: the model has no output nothing; it has probabilities, re/lu:0",
        f"ValueError: the output probabilities, float32[{size // 12}, 3], has {size} bytes; there is room for 1",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a linker that replaces functions (--wrap)")
@pytest.mark.parametrize("executor", EXECUTORS)
def test_out_of_memory(executor: str, program: Path, libraries: dict[str, Path]) -> None:
    """Whichever allocation fails, the caller gets an error, and the sanitizers find nothing lost."""
    assert ran([program, libraries[executor], "memory"]) == ["refused often"]


def test_what_c_cannot_open(
    program: Path, libraries: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package is for Python; a library without a runtime needs the program to have one that can be found."""
    (tmp_path / "model.tar").write_bytes(b"a package")
    done = subprocess.run([program, tmp_path / "model.tar", "1"], capture_output=True, text=True, check=False)
    assert (
        done.returncode == 2 and "a package is for Python: compile the model with -o model.so" in done.stderr
    )
    if not links(platform.machine(), sys.platform):
        pytest.skip("libraries are linked here for x86-64 Linux only")
    monkeypatch.setattr(export, "has_compiler", lambda triple="": False)
    path = tmp_path / "bare.so"
    built("graph").export_library(str(path))
    done = subprocess.run([program, path, "4"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it has no runtime inside: link the program with the shared runtime library" in done.stderr


def test_a_library_without_a_model(program: Path, library_path: Path) -> None:
    """Functions alone are no model, and the message says how to call them."""
    done = subprocess.run([program, library_path, "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no model in it, only functions: tilewright_library_function finds them" in done.stderr


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sessions_of_what_was_built(executor: str) -> None:
    """Before anything is exported the session has the same names."""
    session = built(executor).session()
    assert (session.input_names, session.output_names) == (("x.1",), tuple(NAMES))
    made = session.run({"x.1": np.zeros((4, 8))})
    np.testing.assert_allclose(made["probabilities"], np.full((4, 3), 1 / 3), rtol=1e-6)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_cpp(executor: str, libraries: dict[str, Path], tmp_path: Path) -> None:
    """The C++ header compiles without warnings; sessions free themselves, and errors are exceptions of their kind."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler here")
    copy_runtime(tmp_path)
    source = Path(__file__).with_name("csrc") / "session.cpp"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-I", tmp_path]
    link = ["-L", tmp_path, "-ltilewright_runtime", f"-Wl,-rpath,{tmp_path}"]
    ran([compiler, *flags, source, "-o", tmp_path / "session", *link])
    assert ran([tmp_path / "session", libraries[executor]]) == []
