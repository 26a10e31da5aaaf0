"""The top of the house: ``build``, ``lower``, ``compile_aot``, ``tvmc`` and the command line."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tilewright.compile import OperatorModule, build, get_binds, lower, schedule_to_module

if TYPE_CHECKING:
    from tilewright.driver import tvmc
    from tilewright.relay.backend.aot import AOTModule, compile_aot

__all__ = [
    "AOTModule",
    "OperatorModule",
    "build",
    "compile_aot",
    "get_binds",
    "lower",
    "schedule_to_module",
    "tvmc",
]


def __getattr__(name: str) -> Any:
    """Names that need the graph level are loaded on first use."""
    if name in ("AOTModule", "compile_aot"):
        return getattr(importlib.import_module("tilewright.relay.backend.aot"), name)
    if name == "tvmc":
        return importlib.import_module("tilewright.driver.tvmc")
    raise AttributeError(f"module 'tilewright.driver' has no attribute {name!r}")
