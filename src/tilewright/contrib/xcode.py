"""Apple's tools, through ``xcrun``: libraries for macOS and iOS, compiled Metal and Core ML."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.support.cbuild import CompilerError, write_beside


def xcrun(cmd: Sequence[str]) -> str:
    """What a tool of Xcode prints."""
    if shutil.which("xcrun") is None:
        raise CompilerError(
            f"xcrun was not found, so that {' '.join(map(str, cmd))} cannot run: it comes with Xcode on macOS. "
            "Elsewhere, export_library with a target of -mtriple=aarch64-apple-darwin links with zig."
        )
    done = subprocess.run(["xcrun", *map(str, cmd)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilerError(f"xcrun {' '.join(map(str, cmd))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def _oldest_system(sdk: str, version: str | None) -> list[str]:
    if version is None:
        return []
    return [f"-mmacosx-version-min={version}" if sdk == "macosx" else f"-miphoneos-version-min={version}"]


def create_dylib(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    arch: str,
    sdk: str = "macosx",
    min_os_version: str | None = None,
) -> None:
    """Links objects into a dynamic library for an architecture and a system of Apple's."""
    parts = [objects] if isinstance(objects, (str, Path)) else list(objects)
    root = xcrun(["--sdk", sdk, "--show-sdk-path"])
    command = ["--sdk", sdk, "clang", "-dynamiclib", "-arch", arch, "-isysroot", root]
    command += _oldest_system(sdk, min_os_version)

    def link(path: Path) -> None:
        xcrun([*command, "-o", str(path), *map(str, parts)])

    write_beside(Path(output), link)


create_dylib.output_format = "dylib"  # type: ignore[attr-defined]


def compile_metal(
    code: str, path_target: str | None = None, sdk: str = "macosx", min_os_version: str | None = None
) -> bytearray:
    """The library of Metal that some source compiles to; written to ``path_target`` too if that is given."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, middle, library = (Path(folder, name) for name in ("code.metal", "code.air", "code.metallib"))
        source.write_text(code)
        oldest = _oldest_system(sdk, min_os_version)
        xcrun(["-sdk", sdk, "metal", "-O3", *oldest, "-c", str(source), "-o", str(middle)])
        xcrun(["-sdk", sdk, "metallib", str(middle), "-o", str(path_target or library)])
        return bytearray(Path(path_target or library).read_bytes())


def compile_coreml(model: Any, model_name: str = "main", out_dir: str | Path = ".") -> str:
    """Compiles a model of coremltools, or a stored one (the path of a ``.mlmodel`` file), into
    ``out_dir/model_name.mlmodelc``, which is returned.

    The description of a model of coremltools is replaced by the names of its inputs and outputs in JSON, where TVM's
    runtime for Core ML looks for them.
    """
    if not isinstance(model, (str, Path)) and not hasattr(model, "save"):
        raise CompilerError(
            f"compile_coreml takes a model of coremltools or the path of a .mlmodel file, not {type(model).__name__}"
        )
    compiled = Path(out_dir, f"{model_name}.mlmodelc")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        stored = Path(folder, f"{model_name}.mlmodel")
        if isinstance(model, (str, Path)):
            stored.write_bytes(Path(model).read_bytes())
        else:
            names = {"inputs": list(model.input_description), "outputs": list(model.output_description)}
            model.short_description = json.dumps(names)
            model.save(str(stored))
        said = xcrun(["coremlc", "compile", str(stored), str(out_dir)])
    if not compiled.is_dir():
        raise CompilerError(f"coremlc did not make {compiled}:\n{said}")
    return str(compiled)
