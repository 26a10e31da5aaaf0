"""From the blocks of a StableHLO program to graph-level expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend.common import Unsupported, collect_unsupported
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax import ops as _converters
from tilewright.relay.frontend.jax.attributes import place_of
from tilewright.relay.frontend.jax.node import JaxNode, JaxScope, operation_name
from tilewright.relay.frontend.jax.registry import find_converter
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters

RETURNS = ("return", "func.return")


class GraphImporter:
    """Converts blocks. A block inside an operation sees the values of the blocks around it."""

    def __init__(self, module: Any, scope: JaxScope | None = None) -> None:
        self.functions = {
            one.attributes["sym_name"].value: one.regions[0].blocks[0]
            for one in module.body.operations
            if one.operation.name == "func.func"
        }
        self.scope = scope or JaxScope(IRModule())
        self.values: dict[Any, Any] = {}

    def called(self, name: str, inputs: Sequence[Expr]) -> list[Expr]:
        """The results of a function of the program."""
        if name not in self.functions:
            raise ModelError(f"the program has no function {name!r}")
        outer, self.values = self.values, {}
        try:
            return self.inside(self.functions[name], inputs)
        finally:
            self.values = outer

    def inside(self, block: Any, inputs: Sequence[Expr]) -> list[Expr]:
        """The results of a block for these arguments."""
        self.values.update(zip(block.arguments, inputs, strict=True))
        for operation in block.operations:
            found = operation.operation
            if operation_name(found) in RETURNS:
                return [self.values[one] for one in found.operands]
            self._convert(found)
        return []

    def _convert(self, operation: Any) -> None:
        node = JaxNode(operation, self)
        with node.conversion():
            convert = find_converter(node.op_type)
            if convert is None:
                raise node.fail("the operation is not supported")
            made = convert(node, *[self.values[one] for one in operation.operands])
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            for value, result in zip(operation.results, results, strict=True):
                repeated = result in self.scope.narrow
                self.values[value] = result if repeated else self.scope.folder.settled(result)


def list_unsupported(module: Any) -> list[Unsupported]:
    """The operations of a program, in all its functions, that cannot be converted."""
    return collect_unsupported(_missing(module.operation))


def _missing(operation: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                each = inner.operation
                name = operation_name(each)
                structural = name in RETURNS or name == "func.func" or name.startswith("sdy.mesh")
                complex_numbers = any(
                    "complex<" in str(value.type) for value in (*each.operands, *each.results)
                )
                if not structural and (complex_numbers or find_converter(name) is None):
                    label = f"{name} of complex numbers" if complex_numbers else name
                    found.append((label, place_of(each.location) or name))
                found += _missing(each)
    return found
