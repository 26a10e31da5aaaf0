"""``compile`` on a machine that has neither a C compiler nor ziglang."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.elf_linker import links

# As if ziglang were not installed; with an empty PATH nothing else is found.
COMMAND = """
import sys
sys.modules["ziglang"] = None
from tilewright.driver.cli import main
sys.exit(main(sys.argv[1:]))
"""


def tilewright(folder: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints where there is no compiler; it must end with this code."""
    environment = {**os.environ, "PATH": str(folder / "empty"), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_package_of_object_code(small_onnx, tmp_path, expected):
    """The default works, says what it did and what a compiler would give; the package runs."""
    said = tilewright(tmp_path, "compile", small_onnx, "-o", "model.tar")
    assert "No C compiler was found, so model.tar has object code and no shared library." in said
    assert "For a .so, which C and C++ open," in " ".join(said.split())
    assert "Run it: tilewright run model.tar" in said
    assert max(map(len, said.splitlines()[1:])) <= 80
    np.save(tmp_path / "x.npy", np.ones((2, 4), "float32"))
    tilewright(tmp_path, "run", "model.tar", "-i", "x.npy", "-o", "out.npz")
    with np.load(tmp_path / "out.npz") as stored:
        np.testing.assert_allclose(stored["p"], expected(np.ones((2, 4), "float32"))[1], rtol=1e-5)


@pytest.mark.parametrize("executor", ["vm", "aot"])
def test_other_executors(executor, small_onnx, tmp_path):
    """They need none either."""
    report = json.loads(tilewright(tmp_path, "compile", small_onnx, "--executor", executor, "--json"))
    assert (report["format"], report["lacks_linker"]) == ("tar", True)
    ran = json.loads(tilewright(tmp_path, "run", "module.tar", "--json"))
    assert [one["name"] for one in ran["outputs"]] == ["y", "p"]


def test_code_in_c_needs_none(small_onnx, tmp_path):
    """A model library in C is what its user compiles."""
    options = ["--target", "c", "--executor", "aot", "--executor-aot-interface-api", "c"]
    report = json.loads(tilewright(tmp_path, "compile", small_onnx, *options, "--json"))
    assert (report["format"], report["lacks_linker"]) == ("mlf", False)


@pytest.mark.skipif(
    not links("x86_64", sys.platform), reason="libraries are linked without a compiler for Linux"
)
@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="libraries are linked without a compiler for x86-64"
)
def test_a_shared_library(small_onnx, tmp_path, expected):
    """It is linked here, says what it lacks, and runs from Python."""
    options = ["-o", "model.so", "--with-runtime", "runtime"]
    said = " ".join(tilewright(tmp_path, "compile", small_onnx, *options).split())
    assert "No C compiler was found, so model.so has no copy of the runtime inside" in said
    assert "pip install ziglang" in said
    assert sorted(path.name for path in (tmp_path / "runtime").iterdir()) == [
        "libtilewright_runtime.so",
        "tilewright.h",
        "tilewright.hpp",
    ]
    np.save(tmp_path / "x.npy", np.ones((2, 4), "float32"))
    tilewright(tmp_path, "run", "model.so", "-i", "x.npy", "-o", "out.npz")
    with np.load(tmp_path / "out.npz") as stored:
        np.testing.assert_allclose(stored["p"], expected(np.ones((2, 4), "float32"))[1], rtol=1e-5)


def test_a_library_for_another_machine(small_onnx, tmp_path):
    """That takes a compiler, and the message says in options what else there is."""
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
    said = tilewright(tmp_path, "compile", small_onnx, "--target", target, "-o", "model.so", code=2)
    assert (
        "model.so is a shared library, which a C compiler links, and no C compiler for aarch64-linux-gnu"
        in said
    )
    assert "or write a package of object code with -o model.tar" in said


@pytest.mark.parametrize(
    ("triple", "words"),
    [
        ("x86_64-pc-windows-msvc", "For a .dll, which C and C++ open, install a C compiler"),
        ("arm64-apple-macos", "For a .dylib, which C and C++ open, install a C compiler"),
        (
            "wasm32-unknown-unknown",
            "For a .wasm, which a JavaScript or WASI host opens, install a C compiler",
        ),
        ("aarch64-linux-android21", "For a .so, which C and C++ open, install the Android NDK"),
    ],
)
def test_a_package_for_another_system(triple, words, small_onnx, tmp_path):
    """It has object code, and the name of a library is that system's."""
    said = tilewright(
        tmp_path, "compile", small_onnx, "--target", f"llvm -mtriple={triple}", "-o", "model.tar"
    )
    said = " ".join(said.split())
    assert (
        f"No C compiler for {triple} was found, so model.tar has object code and no shared library." in said
    )
    assert words in said and f"It is code for {triple}: run it there." in said
