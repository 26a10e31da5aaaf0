"""Calling a C compiler to link objects: ``create_shared``, ``create_executable``, ``cross_compiler``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime.failure import failure
from tilewright.support.cbuild import Compiler, CompilerError, find_compiler, write_beside


def _compiler(cc: str | None) -> Compiler:
    return Compiler((cc,)) if cc else find_compiler()


def get_cc() -> str | None:
    """The path of the C compiler that links by default; None if there is none."""
    try:
        return shutil.which(find_compiler().command[0])
    except CompilerError:
        return None


def _link(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None,
    cc: str | None,
    flags: Sequence[str],
) -> None:
    parts = [objects] if isinstance(objects, (str, Path)) else list(objects)
    compiler = _compiler(cc)
    write_beside(Path(output), lambda path: compiler.run([*flags, "-o", path, *parts, *(options or ())]))


def create_shared(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> None:
    """Links objects into a shared library, with ``cc``, by default the machine's compiler or ``zig cc``."""
    _link(output, objects, options, cc, ("-shared", "-fPIC"))


create_shared.output_format = "so"  # type: ignore[attr-defined]


def create_executable(
    output: str | Path,
    objects: str | Path | Sequence[str | Path],
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> None:
    """Links objects into a program."""
    _link(output, objects, options, cc, ())
    Path(output).chmod(0o755)


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """A function that asks a compiler of the GCC family for its target triple; it returns None if that fails."""

    def get_target_triple() -> str | None:
        if not compiler:
            return None
        try:
            done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() or None if done.returncode == 0 else None

    return get_target_triple


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[str] | None = None,
) -> Callable[..., None]:
    """A function for ``export_library``'s ``fcompile``, from a compiler's name or from a function that links.

    ``options`` and ``add_files`` are added to every call.
    """
    base_options = list(options or ())
    extra_files = list(add_files or ())
    if isinstance(compile_func, str):
        name = compile_func

        def link(output: str, objects: Sequence[str], options: Sequence[str] | None = None) -> None:
            create_shared(output, objects, options, cc=name)

        chosen: Callable[..., None] = link
        output_format = output_format or "so"
        get_target_triple = get_target_triple or get_target_by_dump_machine(name)
    elif callable(compile_func):
        chosen = compile_func
    else:
        raise failure(
            "TypeError",
            f"cross_compiler needs a compiler's name or a function, not {type(compile_func).__name__}",
        )

    def fcompile(
        outputs: str, objects: Sequence[str], options: Sequence[str] | None = None, **kwargs: Any
    ) -> None:
        chosen(outputs, [*objects, *extra_files], options=base_options + list(options or ()), **kwargs)

    fcompile.output_format = output_format or getattr(compile_func, "output_format", "so")  # type: ignore[attr-defined]
    triple = get_target_triple or getattr(compile_func, "get_target_triple", None)
    if triple is not None:
        fcompile.get_target_triple = triple  # type: ignore[attr-defined]
    return fcompile


__all__ = [
    "CompilerError",
    "create_executable",
    "create_shared",
    "cross_compiler",
    "get_target_by_dump_machine",
]
