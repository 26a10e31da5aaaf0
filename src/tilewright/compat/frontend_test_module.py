"""TVM's ``support.FrontendTestModule``: a module whose functions are Python's, for tests of what calls modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.runtime.module import Module
from tilewright.runtime.packed_func import convert_to_tvm_func


class FrontendTestModule(Module):
    """A module without code of its own, to which functions are added."""

    def __init__(self, entry_name: str | None = None) -> None:
        super().__init__("frontend_test")
        if entry_name is not None:
            self.entry_name = entry_name

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Give the module a function."""
        self._functions[name] = convert_to_tvm_func(func)
        self._function_names = (*self._function_names, name)

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self.add_function(name, func)
