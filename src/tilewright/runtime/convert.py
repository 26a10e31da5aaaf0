"""``runtime.convert``: Python values as the values of programs.

What those are is known to the layer of expressions, above this one; it puts its function here when it is loaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

CONVERTERS: list[Callable[..., Any]] = []
"""The conversion, once the layer of expressions is loaded."""


def convert(value: Any, span: Any = None) -> Any:
    """A number as a constant, a sequence as an Array, a dictionary as a Map; see ``ir.convert``."""
    if not CONVERTERS:
        importlib.import_module("tilewright.ir.convert")
    return CONVERTERS[0](value, span)
