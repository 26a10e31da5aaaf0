"""What tests of code generators share: C source made into functions that can be called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.runtime.packed_func import PackedFunc
from tilewright.support.cbuild import CompilerError, find_compiler, runtime_library

CompileC = Callable[..., PackedFunc]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> CompileC:
    """Compiles C source against the runtime and gives one of its packed functions."""
    try:
        compiler = find_compiler()
    except CompilerError as error:
        pytest.skip(str(error))

    def make(source: str, name: str) -> PackedFunc:
        folder: Path = tmp_path_factory.mktemp("c")
        path, library = folder / "code.c", folder / "code.so"
        path.write_text(source)
        warnings = ["-Wall", "-Werror", "-Wno-unused-variable", "-Wno-unused-function"]
        compiler.run(
            ["-std=c11", "-O1", "-fPIC", "-shared", *warnings, path, runtime_library(), "-o", library, "-lm"]
        )
        loaded = ctypes.CDLL(str(library))
        address = ctypes.cast(loaded[f"__tvm_ffi_{name}"], ctypes.c_void_p).value
        assert address
        return PackedFunc(address, name=name, keep_alive=loaded)

    return make
