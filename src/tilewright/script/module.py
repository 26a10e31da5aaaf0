"""Modules from scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.support.errors import ParseError
from tilewright.tir.function import PrimFunc
from tilewright.tir.script.parser import make_module, parse_function, parse_source


def ir_module(mod: type) -> IRModule:
    """Decorator of a class whose functions are decorated with ``T.prim_func``: the module of those functions."""
    if not isinstance(mod, type):
        raise ParseError(f"ir_module decorates a class, not {mod!r}")
    found = vars(mod)
    functions = {name: value for name, value in found.items() if isinstance(value, PrimFunc)}
    for name, value in found.items():
        if callable(value) and not isinstance(value, PrimFunc) and not name.startswith("__"):
            raise ParseError(f"{mod.__name__}.{name} is not decorated with T.prim_func")
    return make_module(functions, found.get("__module_attrs__"))


def from_source(input_func: str | Callable[..., Any] | type, tir_prefix: str = "T") -> PrimFunc | IRModule:
    """The function or module that a script describes.

    Its text, a Python function, or a class of decorated functions.
    """
    if isinstance(input_func, str):
        return parse_source(input_func, tir_prefix)
    if isinstance(input_func, type):
        return ir_module(input_func)
    return parse_function(input_func)
