"""Linking for the browser with Emscripten."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tilewright.contrib.cc import create_shared
from tilewright.support.cbuild import CompilerError


def create_tvmjs_wasm(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str = "emcc",
) -> None:
    """Links objects into a WebAssembly module that JavaScript loads by itself."""
    if shutil.which(cc) is None:
        raise CompilerError(
            f"{cc} was not found: install Emscripten and put it on the PATH, or export a library for "
            "-mtriple=wasm32-wasi, which needs no Emscripten"
        )
    flags = ["-O3", "--no-entry", "-s", "STANDALONE_WASM=1", "-s", "ALLOW_MEMORY_GROWTH=1"]
    create_shared(output, objects, options=[*flags, *(options or ())], cc=cc)


create_tvmjs_wasm.object_format = "bc"  # type: ignore[attr-defined]
