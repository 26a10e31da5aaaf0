"""Tools of other vendors: how they are called where they are there, and what is said where they are not."""

from __future__ import annotations

import json
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


class Stored:
    """What coremltools gives: a model with descriptions, which it writes to a file."""

    short_description = ""
    input_description = ("image",)
    output_description = ("label", "score")

    def save(self, path: str) -> None:
        Path(path).write_text(self.short_description)


def compiler(folder: Path, makes: str) -> None:
    """An ``xcrun`` whose ``coremlc compile MODEL FOLDER`` does what is said."""
    program = folder / "xcrun"
    program.write_text(f'#!/bin/sh\necho "$@" > "$0.log"\nname=$(basename "$3" .mlmodel)\n{makes}\n')
    program.chmod(0o755)


def test_core_ml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of coremltools and the path of a stored one are compiled into a folder, under the name that is given; the
    first says its inputs and outputs in its description."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    compiler(tmp_path, 'mkdir "$4/$name.mlmodelc" && cp "$3" "$4/$name.mlmodelc/model"')
    out = tmp_path / "out"
    out.mkdir()
    assert xcode.compile_coreml(Stored(), "net", out) == str(out / "net.mlmodelc")
    names = json.loads((out / "net.mlmodelc" / "model").read_text())
    assert names == {"inputs": ["image"], "outputs": ["label", "score"]}
    command = (tmp_path / "xcrun.log").read_text().split()
    assert command[:2] == ["coremlc", "compile"] and command[3] == str(out)
    (tmp_path / "kept.mlmodel").write_bytes(b"stored")
    compiled = xcode.compile_coreml(tmp_path / "kept.mlmodel", out_dir=out)
    assert (Path(compiled) / "model").read_bytes() == b"stored" and Path(compiled).name == "main.mlmodelc"
    compiler(tmp_path, "echo nothing to compile")
    with pytest.raises(CompilerError, match=r"did not make .*other\.mlmodelc:\nnothing to compile"):
        xcode.compile_coreml(Stored(), "other", out)
    with pytest.raises(CompilerError, match="not int"):
        xcode.compile_coreml(3)  # type: ignore[arg-type]
