"""``runtime.convert`` and ``runtime.const``: Python values as the values of programs.

What those are is known to the layer of expressions, above this one; it puts its functions here when it is loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

MAKERS: dict[str, Callable[..., Any]] = {}
"""The functions by name, once the layer of expressions is loaded."""


def _maker(name: str) -> Callable[..., Any]:
    if name not in MAKERS:
        importlib.import_module("tilewright.ir.convert")
    return MAKERS[name]


def convert(value: Any, span: Any = None) -> Any:
    """A number as a constant, a sequence as an Array, a dictionary as a Map; see ``ir.convert``."""
    return _maker("convert")(value, span)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """A constant of a type; see ``tir.const``."""
    return _maker("const")(value, dtype, span)
