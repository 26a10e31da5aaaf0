"""From an MXNet symbol to graph-level expressions."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.common import ShapeNeeded, Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.mxnet import ops as _converters
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import find_converter, inputs_read
from tilewright.relay.frontend.mxnet.symbol import VARIABLE, Symbol, SymbolEntry
from tilewright.support.wording import argument

assert _converters  # importing it registers the converters

_SHAPE: Final = "__shape__"
"""The attribute of variables that were given a shape when they were made."""


def inputs_of(node: SymbolEntry) -> tuple[tuple[int, int], ...]:
    """What the converter of a node reads: labels for training are not among it."""
    return node.inputs[: inputs_read(node.operator)]


def needed_nodes(symbol: Symbol) -> list[int]:
    """The nodes that the heads depend on, in the order in which they run."""
    needed = {place for place, _ in symbol.heads}
    for place in reversed(range(len(symbol.nodes))):
        if place in needed:
            needed.update(one for one, _ in inputs_of(symbol.nodes[place]))
    return sorted(needed)


def list_unsupported(symbol: Symbol) -> list[Unsupported]:
    """The operators of a symbol that cannot be converted."""
    nodes = [symbol.nodes[place] for place in needed_nodes(symbol)]
    return collect_unsupported(
        (node.operator, node.name)
        for node in nodes
        if node.operator != VARIABLE and find_converter(node.operator) is None
    )


class SymbolImporter:
    """Converts a symbol whose parameters have these values and whose inputs have these shapes and element types."""

    def __init__(
        self,
        symbol: Symbol,
        scope: Scope,
        parameters: Mapping[str, np.ndarray[Any, Any]],
        shapes: Mapping[str, Any],
        dtypes: str | Mapping[str, str],
    ) -> None:
        self.symbol = symbol
        self.scope = scope
        self.parameters = parameters
        self.shapes = shapes
        self.dtypes = dtypes
        self.inputs: list[Var] = []
        self.values: dict[int, list[Any]] = {}

    def convert(self) -> list[Expr]:
        """Convert the nodes; the expressions of the heads."""
        for place in needed_nodes(self.symbol):
            entry = self.symbol.nodes[place]
            node = SymbolNode(entry, self.scope)
            if entry.operator == VARIABLE:
                self.values[place] = [self._variable(node)]
                continue
            convert = find_converter(entry.operator)
            if convert is None:
                raise node.fail("the operator is not supported")
            with node.conversion():
                made = convert(node, *(self._result(node, one) for one in inputs_of(entry)))
                results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
                self.values[place] = [self.scope.folder.settled(one) for one in results]
        return [
            self._result(SymbolNode(self.symbol.nodes[head[0]], self.scope), head)
            for head in self.symbol.heads
        ]

    def _result(self, node: SymbolNode, reference: tuple[int, int]) -> Any:
        place, number = reference
        results = self.values[place]
        if number >= len(results):
            raise node.fail(
                f"result {number} of {self.symbol.nodes[place].name!r} is asked for, which has {len(results)}"
            )
        return results[number]

    def _variable(self, node: SymbolNode) -> Expr:
        """A parameter, or an input."""
        value = self.parameters.get(node.name)
        if value is not None:
            return self.scope.stored(node.name, value)
        shape = self.shapes.get(node.name, self._declared(node))
        if shape is None:
            raise ShapeNeeded(
                f"the variable {node.name!r} is not among the parameters, and its shape is not known: give the "
                f"parameters, or if it is an input {argument('shape')}"
            )
        kind = self.dtypes if isinstance(self.dtypes, str) else self.dtypes.get(node.name, "float32")
        self.inputs.append(Var(node.name, input_type(node.name, shape, kind)))
        return self.inputs[-1]

    def _declared(self, node: SymbolNode) -> tuple[int, ...] | None:
        """The shape that the symbol states; None where a size of it is open."""
        try:
            found = ast.literal_eval(node.text(_SHAPE, "None"))
        except (ValueError, SyntaxError):
            return None
        known = isinstance(found, tuple) and all(isinstance(size, int) and size > 0 for size in found)
        return found if known else None
