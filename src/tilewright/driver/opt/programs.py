"""Programs from files: Relay in its text form, loops in TVMScript, or a model that a frontend imports."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.backend.preparation import bind_params_by_name
from tilewright.relay.from_text import parse
from tilewright.relay.frontend.registry import import_model
from tilewright.relay.infer import infer_module
from tilewright.support.errors import ModelError
from tilewright.tir.function import PrimFunc
from tilewright.tir.script.parser import make_module, parse_source

STDIN = "-"
_TEXT_SUFFIXES = ("", ".txt", ".relay", ".rly", ".py", ".tir")
_SCRIPT = re.compile(r"^\s*(class|def)\s+\w", re.MULTILINE)
"""What a script has and Relay's text has not: classes, and names without ``@`` after ``def``."""


def read_program(
    path: str, model_format: str | None = None, shapes: dict[str, Any] | None = None
) -> IRModule:
    """The program in a file, or on standard input for ``-``. Parameters of a model are constants of the program."""
    if path == STDIN:
        return program_from_text(sys.stdin.read(), "<stdin>")
    file = Path(path)
    if file.is_dir():
        raise ModelError(f"{path} is a folder: name a file")
    if not file.exists():
        raise ModelError(f"there is no file {path}")
    if model_format is None and file.suffix.lower() in _TEXT_SUFFIXES:
        try:
            return program_from_text(file.read_text(encoding="utf-8"), path)
        except UnicodeDecodeError:
            raise ModelError(
                f"{path} is not text; if it is a model, say which kind with --model-format"
            ) from None
    module, parameters = import_model(path, model_format, shapes)
    main = bind_params_by_name(module["main"], parameters)
    return infer_module(module.with_functions({**module.functions, module.get_global_var("main"): main}))


def program_from_text(text: str, name: str) -> IRModule:
    """The module that a text describes: a script if it has Python's definitions, otherwise Relay."""
    if not text.strip():
        raise ModelError(f"{name} is empty: give a Relay program, or a TVMScript function or class")
    if not _SCRIPT.search(text):
        return parse(text, name)
    made = parse_source(text)
    if isinstance(made, PrimFunc):
        return make_module({str(made.attrs.get("global_symbol", "main")): made})
    return made


def program_text(module: IRModule, complete: bool) -> str:
    """The text of a program. ``complete`` is what can be read back; otherwise large constants are left out."""
    return (module.astext() if complete else str(module)).strip("\n") + "\n"
