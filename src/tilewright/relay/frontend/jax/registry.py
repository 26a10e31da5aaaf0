"""The registry of converters: how each operation of StableHLO and CHLO becomes a graph-level expression.

    @converter("add")
    def add(node: JaxNode, left: Expr, right: Expr) -> Expr: ...

A converter takes the node and one argument per operand, and returns an expression, or a sequence of expressions for
several results. Names are those of StableHLO without its prefix; operations of other dialects keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_CONVERTERS: Final[dict[str, Converter]] = {}


def converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of operations of these names."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"there are two converters of {name}")
            _CONVERTERS[name] = function
        return function

    return register


def find_converter(name: str) -> Converter | None:
    """The converter of an operation, or None."""
    return _CONVERTERS.get(name)


def converted_names() -> list[str]:
    """The operations that can be converted."""
    return sorted(_CONVERTERS)
