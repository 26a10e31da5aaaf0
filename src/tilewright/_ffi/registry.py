"""The registry of functions, under the name of the module that TVM has it in."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)

__all__ = [
    "_init_api",
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


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Puts the functions that are registered below a namespace into a module, under the rest of their names."""
    module = sys.modules[target_module_name or namespace]
    prefix = f"{namespace.removeprefix('tvm.')}."
    for name in list_global_func_names():
        rest = name.removeprefix(prefix)
        if name.startswith(prefix) and rest.isidentifier():
            setattr(module, rest, get_global_func(name))
