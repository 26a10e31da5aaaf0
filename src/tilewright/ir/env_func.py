"""Registered functions as values of a program, referred to by name, so that they have a text form."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.registry import get_global_func
from tilewright.support.node import Node, node
from tilewright.support.slot import ALL_LEVELS


@node
class EnvFunc(Node):
    """The function that is registered under a name where the program runs."""

    name: str

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function of this name; an error where none is registered."""
        if get_global_func(name, allow_missing=True) is None:
            ALL_LEVELS.value()  # the graph level registers functions of its own, such as type relations
        get_global_func(name)
        return EnvFunc(name)

    @property
    def func(self) -> Any:
        """The function itself."""
        return get_global_func(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)
