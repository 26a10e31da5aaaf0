"""What is no object itself but can be turned into one, under the name of the module that TVM has it in."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.convert import const, convert
from tilewright.runtime.convert import convert as convert_to_object

__all__ = ["ObjectGeneric", "const", "convert", "convert_to_object"]


class ObjectGeneric:
    """A value whose ``asobject`` gives what stands for it in a program; ``convert`` calls it."""

    __slots__ = ()

    def asobject(self) -> Any:
        """The object that stands for this value."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it becomes an object")
