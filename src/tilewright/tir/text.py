"""The text form of statements, functions and modules. The printer is in ``tir.script``."""

from __future__ import annotations

from typing import Any

from tilewright.ir.module import IRModule
from tilewright.tir.script.function_printer import print_function, print_module, print_statement


def script(func_or_module: Any, tir_prefix: str = "T", show_meta: bool = False) -> str:
    """A function or module in TVMScript; ``tilewright.script.from_source`` reads it back.

    ``show_meta`` adds a comment on each value without a text form.
    """
    if isinstance(func_or_module, IRModule):
        return print_module(func_or_module, tir_prefix, show_meta)
    return print_function(func_or_module, tir_prefix, show_meta)


def stmt_text(stmt: Any) -> str:
    """A statement, for messages and ``repr``."""
    return print_statement(stmt)
