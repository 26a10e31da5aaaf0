"""The registry of converters: how each operator of TensorFlow, and of TFLite, becomes a graph-level expression.

    @converter("ExpandDims", "EXPAND_DIMS")
    def expand_dims(node: GraphNode, data: Expr, axis: Expr) -> Expr: ...

A converter takes the node and one argument per input, and returns an expression, or a sequence of expressions for
several outputs. TFLite's operators, whose names are in capitals, are registered together with those of TensorFlow that
mean the same: importers name attributes alike.
"""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converter, Converters

_CONVERTERS: Final = Converters()
converter = _CONVERTERS.register
find_converter = _CONVERTERS.find
converted_names = _CONVERTERS.names

__all__ = ["Converter", "converted_names", "converter", "find_converter"]
