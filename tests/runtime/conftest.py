"""Compiled functions for the runtime's tests: a C file with the convention of a code generator, built once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.runtime.loading import ObjectModule
from tilewright.support.cbuild import SOURCES, find_compiler

CompileKernels = Callable[..., bytes]


@pytest.fixture(scope="session")
def compile_kernels(tmp_path_factory: pytest.TempPathFactory) -> CompileKernels:
    """Compiles ``csrc/kernels.c`` with further flags; returns the object file."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    source = Path(__file__).with_name("csrc") / "kernels.c"

    def build(*flags: str) -> bytes:
        output = tmp_path_factory.mktemp("kernels") / "kernels.o"
        common = ["-O2", "-fPIC", "-fvisibility=hidden", "-I", SOURCES, "-DTILEWRIGHT_EMBEDDED"]
        find_compiler().run([*common, *flags, "-c", source, "-o", output])
        return output.read_bytes()

    return build


@pytest.fixture(scope="session")
def kernel_code(compile_kernels: CompileKernels) -> bytes:
    """The object file of the kernels."""
    return compile_kernels()


@pytest.fixture
def kernels(kernel_code: bytes) -> ObjectModule:
    """The kernels as a module."""
    module = ObjectModule([kernel_code], "kernels.o")
    module.describe("kernels.o")
    return module


@pytest.fixture(scope="session")
def library_path(kernel_code: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels exported as a shared library."""
    path = tmp_path_factory.mktemp("library") / "kernels.so"
    ObjectModule([kernel_code], "kernels.o").export_library(str(path))
    return path
