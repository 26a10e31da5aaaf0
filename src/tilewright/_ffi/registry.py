"""The registry of functions, under the name of the module that TVM has it in."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)

__all__ = [
    "get_global_func",
    "list_global_func_names",
    "register_func",
    "register_object",
    "remove_global_func",
]


def register_object(type_key: Any = None) -> Any:
    """A decorator for classes of objects. Classes are plain Python here, so nothing needs to be registered."""
    if isinstance(type_key, type):
        return type_key
    return lambda cls: cls
