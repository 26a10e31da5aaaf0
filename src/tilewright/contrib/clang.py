"""Compiling C and C++ to LLVM IR with clang: the body of an intrinsic that a schedule imports (``pragma
import_llvm``)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.contrib.utils import is_source_path
from tilewright.support.cbuild import Compiler, CompilerError, write_beside, zig_command


def find_clang(required: bool = True) -> list[str]:
    """The commands that can be used, the best first: clang, and ``zig c++``, which is one too.

    None is an error that says what to install; with ``required=False`` it is an empty list.
    """
    program = shutil.which("clang")
    found = [program] if program else []
    zig = zig_command()
    if zig is not None:
        # Unlike clang, zig generates code for this machine's CPU unless told otherwise.
        found.append(" ".join((*zig[:-1], "c++", "-mcpu=baseline")))
    if required and not found:
        raise CompilerError(
            "clang was not found: neither on the PATH nor as part of zig. "
            "Install clang, or `pip install ziglang` (the extra tilewright[cross])."
        )
    return found


def create_llvm(
    inputs: str | Sequence[str],
    output: str | Path | None = None,
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> str:
    """The LLVM IR of a file, or of a text of C++, as text; written to ``output`` too if that is given.

    ``cc`` is the compiler's command, by default the first of ``find_clang``.
    """
    sources = [inputs] if isinstance(inputs, str) else list(inputs)
    if len(sources) != 1:
        raise CompilerError(f"create_llvm takes one input, not {len(sources)}: LLVM IR is made file by file")
    compiler = Compiler(tuple((cc or find_clang()[0]).split()))
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source = Path(sources[0]) if is_source_path(sources[0]) else Path(folder, "input.cc")
        if not is_source_path(sources[0]):
            source.write_text(sources[0])
        made = Path(folder, "output.ll")
        compiler.run(["-O3", "-emit-llvm", "-S", *(options or ()), "-o", made, source])
        text = made.read_text()
    if output is not None:
        write_beside(Path(output), lambda path: _write(path, text))
    return text


def _write(path: Path, text: str) -> None:
    path.write_text(text)
