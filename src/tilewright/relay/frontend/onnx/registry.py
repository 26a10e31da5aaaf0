"""The registry of converters: how each ONNX operator becomes a graph-level expression.

    @converter("Clip", since=11)
    def clip(node: Node, data: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr: ...

A converter takes the node and one argument per input (None for an omitted optional input), and returns an expression,
or a sequence of expressions for several outputs. An opset uses the converter with the largest ``since`` not above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Converter = Callable[..., Any]

DEFAULT_DOMAIN: Final = ""
ML_DOMAIN: Final = "ai.onnx.ml"
MICROSOFT_DOMAIN: Final = "com.microsoft"

_CONVERTERS: dict[tuple[str, str], list[tuple[int, Converter]]] = {}


def converter(*names: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[Converter], Converter]:
    """Register a converter of operators of these names, from an opset on."""

    def register(function: Converter) -> Converter:
        for name in names:
            known = _CONVERTERS.setdefault((domain, name), [])
            known.append((since, function))
            known.sort(key=lambda entry: entry[0])
        return function

    return register


def find_converter(domain: str, name: str, opset: int) -> Converter | None:
    """The converter of an operator under an opset, or None."""
    canonical = DEFAULT_DOMAIN if domain == "ai.onnx" else domain
    found = None
    for since, function in _CONVERTERS.get((canonical, name), ()):
        if since <= opset:
            found = function
    return found


def converter_versions(domain: str, name: str) -> list[int]:
    """The opsets from which on there is another converter of an operator."""
    return [since for since, _ in _CONVERTERS.get((domain, name), ())]
