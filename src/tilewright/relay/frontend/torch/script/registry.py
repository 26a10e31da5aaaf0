"""Operators that only TorchScript has: those on numbers, lists, tuples and dictionaries, and control flow.

    @operator("aten::append.t")
    def append(node: ScriptNode, values: Any, item: Any) -> Any: ...

They take the values of the graph as they are: tensors and lists as handles. One result is returned as it is; nodes with
several outputs return a list of as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Operator = Callable[..., Any]

_OPERATORS: Final[dict[str, Operator]] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register the conversion of operators, ``"aten::len"`` for all overloads or ``"aten::len.t"`` for one."""

    def register(function: Operator) -> Operator:
        for name in names:
            if name in _OPERATORS:
                raise ValueError(f"there are two conversions of {name}")
            _OPERATORS[name] = function
        return function

    return register


def find_operator(name: str, overload: str) -> Operator | None:
    """The conversion of an operator, that of the overload if there is one."""
    found = _OPERATORS.get(f"{name}.{overload}") if overload else None
    return found or _OPERATORS.get(name)
