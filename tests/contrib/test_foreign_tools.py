"""Tools of other vendors: how they are called where they are there, and what is said where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.contrib import emcc, ndk, xcode
from tilewright.support.cbuild import CompilerError


def fake(folder: Path, name: str) -> Path:
    """A program that writes its arguments to the file behind -o, and to a log."""
    program = folder / name
    program.write_text(
        '#!/bin/sh\necho "$@" >> "$0.log"\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && echo made > "$2"; shift; done\n'
    )
    program.chmod(0o755)
    return program


def test_missing_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names what to install, and what works without it."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    with pytest.raises(CompilerError, match=r"TVM_NDK_CC is not set.*zig"):
        ndk.create_shared("a.so", ["a.o"])
    with pytest.raises(CompilerError, match="emcc was not found: install Emscripten"):
        emcc.create_tvmjs_wasm("a.wasm", ["a.o"])
    with pytest.raises(CompilerError, match="xcrun was not found.*Xcode"):
        xcode.create_dylib("a.dylib", ["a.o"], "arm64")


def test_the_tools_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the objects, the output and what each needs."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TVM_NDK_CC", str(fake(tmp_path, "ndk-clang")))
    ndk.create_shared(tmp_path / "a.so", [tmp_path / "a.o"])
    assert (tmp_path / "a.so").exists() and "-shared" in (tmp_path / "ndk-clang.log").read_text()
    fake(tmp_path, "emcc")
    emcc.create_tvmjs_wasm(tmp_path / "a.wasm", "a.bc")
    assert "STANDALONE_WASM=1" in (tmp_path / "emcc.log").read_text()
    fake(tmp_path, "xcrun")
    assert xcode.compile_metal("kernel void f() {}", sdk="iphoneos", min_os_version="15.0") == b"made\n"
    assert "-miphoneos-version-min=15.0" in (tmp_path / "xcrun.log").read_text()
