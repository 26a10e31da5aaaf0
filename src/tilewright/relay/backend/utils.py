"""Names of what is generated for a module."""

from __future__ import annotations

import re


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of the functions of a model: ``tvmgen_`` and its name, ``tvmgen`` without one."""
    if not mod_name:
        return "tvmgen"
    if not re.fullmatch(r"[A-Za-z0-9_]+", mod_name):
        raise ValueError(f"{mod_name!r} cannot be part of a name in C: use letters, digits and underscores")
    return f"tvmgen_{mod_name}"
