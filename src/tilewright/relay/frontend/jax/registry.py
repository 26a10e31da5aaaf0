"""The registry of converters: how each operation of StableHLO and CHLO becomes a graph-level expression.

    @converter("add")
    def add(node: JaxNode, left: Expr, right: Expr) -> Expr: ...

A converter takes the node and one argument per operand, and returns an expression, or a sequence of expressions for
several results. Names are those of StableHLO without its prefix; operations of other dialects keep theirs.
"""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converter, Converters

_CONVERTERS: Final = Converters()
converter = _CONVERTERS.register
find_converter = _CONVERTERS.find
converted_names = _CONVERTERS.names

__all__ = ["Converter", "converted_names", "converter", "find_converter"]
