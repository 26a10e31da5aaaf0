"""Schemas of TorchScript's operators: the names of arguments, their defaults, and which of them are written or shown
by a view."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tilewright.relay.frontend.torch.package import torch_package

_NUMBERS: Final = frozenset({"int", "float", "bool", "number"})
_MAYBE_VIEWS: Final = frozenset(
    {
        "aten::contiguous",
        "aten::flatten",
        "aten::reshape",
        "aten::reshape_as",
        "aten::to",
        "aten::type_as",
        "aten::_reshape_alias",
        "aten::__getitem__",
    }
)
"""Operators that give a view where they can, else a copy."""


@dataclass(frozen=True)
class Schema:
    """What an operator takes and does."""

    name: str
    overload: str
    arguments: tuple[str, ...]
    named: tuple[str, ...]
    """The arguments that are given by name only."""
    defaults: dict[str, Any]
    written: str | None
    """The argument that is written in place."""
    viewed: str | None
    """The argument of which the results are views."""
    has_numbers_only: bool

    @property
    def qualified(self) -> str:
        """The name with the overload."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def positional(self) -> tuple[str, ...]:
        """The arguments that are given by their place."""
        return self.arguments[: len(self.arguments) - len(self.named)]

    @property
    def may_copy(self) -> bool:
        """True if it depends on the layout in memory whether the result is a view."""
        return self.name in _MAYBE_VIEWS


@cache
def parsed_schema(text: str) -> Schema:
    """The schema that a node prints."""
    found = torch_package()._C.parse_schema(text)
    arguments = list(found.arguments)
    written = viewed = None
    returns_tensors = any("Tensor" in str(one.type) for one in found.returns)
    for argument in arguments:
        alias = argument.alias_info
        if alias is None:
            continue
        if alias.is_write:
            written = written or argument.name
        elif returns_tensors and str(argument.type) == "Tensor" and viewed is None:
            viewed = argument.name
    defaults = {one.name: one.default_value for one in arguments if one.has_default_value()}
    return Schema(
        found.name,
        found.overload_name,
        tuple(one.name for one in arguments),
        tuple(one.name for one in arguments if one.kwarg_only),
        defaults,
        written,
        None if written else viewed,
        bool(arguments) and all(str(one.type) in _NUMBERS for one in arguments),
    )
