"""Operators that have no converter, by PyTorch's own definitions of them in terms of others."""

from __future__ import annotations

from typing import Any, Final

from tilewright.relay.frontend.torch.aliasing import schema_of
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.registry import find_converter

ROUNDS: Final = 5
"""How often definitions may lead to operators that need a definition themselves."""


def operators_without_converter(graph_module: Any) -> set[Any]:
    """The operators of a graph, and of the graphs inside it, that have no converter."""
    torch = torch_package()
    found: set[Any] = set()
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            schema = schema_of(node.target) if node.op == "call_function" else None
            if schema is not None and find_converter(schema.name, schema.overload_name) is None:
                found.add(node.target)
    return found


def definitions_of(operators: set[Any]) -> dict[Any, Any]:
    """The definitions that PyTorch has for operators."""
    if not operators:
        return {}
    torch = torch_package()
    known: Any = torch.export.default_decompositions()
    found = {one: known[one] for one in operators if one in known}
    for one in operators - found.keys():
        if one in torch._decomp.decomposition_table:
            found[one] = torch._decomp.decomposition_table[one]
    return found


def with_definitions(program: Any) -> Any:
    """An exported program in which operators without a converter are replaced by their definitions, where PyTorch has
    them."""
    tried: set[Any] = set()
    for _ in range(ROUNDS):
        missing = operators_without_converter(program.graph_module) - tried
        table = definitions_of(missing)
        if not table:
            break
        tried |= missing
        program = program.run_decompositions(table)
    return program
