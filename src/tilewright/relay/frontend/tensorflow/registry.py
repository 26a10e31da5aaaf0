"""The registry of converters: how each operator of TensorFlow, and of TFLite, becomes a graph-level expression.

    @converter("ExpandDims", "EXPAND_DIMS")
    def expand_dims(node: GraphNode, data: Expr, axis: Expr) -> Expr: ...

A converter takes the node and one argument per input, and returns an expression, or a sequence of expressions for
several outputs. TFLite's operators, whose names are in capitals, are registered together with those of TensorFlow that
mean the same: importers name attributes alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_CONVERTERS: Final[dict[str, Converter]] = {}


def converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of operators of these names."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"there are two converters of {name}")
            _CONVERTERS[name] = function
        return function

    return register


def find_converter(name: str) -> Converter | None:
    """The converter of an operator, or None."""
    return _CONVERTERS.get(name)


def converted_names() -> list[str]:
    """The operators that can be converted."""
    return sorted(_CONVERTERS)
