"""TVM's ``_ffi_api`` modules, which have the functions that are registered below a name.

TVM fills those modules from its C++ code. Here they have what is registered when they are first imported, which is the
little that TVM's Python code has no other name for.
"""

from __future__ import annotations

from typing import Any

from tilewright.compat.providers import NAMESPACES
from tilewright.runtime.registry import get_global_func, list_global_func_names


def attributes(module: str) -> dict[str, Any]:
    """The functions of one of the modules."""
    prefix = f"{NAMESPACES[module]}."
    return {
        name.removeprefix(prefix): get_global_func(name)
        for name in list_global_func_names()
        if name.startswith(prefix) and name.removeprefix(prefix).isidentifier()
    }
