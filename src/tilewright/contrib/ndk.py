"""Linking for Android with the compiler of its NDK, which ``TVM_NDK_CC`` names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tilewright.contrib.cc import create_shared as link
from tilewright.contrib.cc import get_target_by_dump_machine
from tilewright.support.cbuild import CompilerError


def _compiler() -> str:
    found = os.environ.get("TVM_NDK_CC")
    if not found:
        raise CompilerError(
            "TVM_NDK_CC is not set: it names the NDK's compiler, such as "
            "$NDK/toolchains/llvm/prebuilt/linux-x86_64/bin/aarch64-linux-android24-clang++. "
            "Without an NDK, export_library with a target of -mtriple=aarch64-linux-android links with zig."
        )
    return found


def create_shared(
    output: str | Path, objects: str | Path | Sequence[str | Path], options: Sequence[str] | None = None
) -> None:
    """Links objects into a shared library for Android."""
    link(output, objects, options=["-static-libstdc++", *(options or ())], cc=_compiler())


def _target_triple() -> str | None:
    return get_target_by_dump_machine(os.environ.get("TVM_NDK_CC", ""))()


create_shared.output_format = "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = _target_triple  # type: ignore[attr-defined]
