"""Operators of TorchScript that have no converter, by PyTorch's own definitions of them.

PyTorch runs the definition on tensors without data, of the types that the arguments have, and what it calls is
converted in the operator's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.torch.aliasing import needs_functionalization
from tilewright.relay.frontend.torch.control_flow import HIGHER_ORDER
from tilewright.relay.frontend.torch.decomposition import (
    ROUNDS,
    definitions_of,
    operators_without_converter,
)
from tilewright.relay.frontend.torch.graph import GraphImporter
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.node import ScriptNode


def by_definition(node: ScriptNode, arguments: Mapping[str, Any]) -> Any:
    """The result of a node's operator for its arguments by name; None where PyTorch has no definition that can be
    converted, or where a size is open."""
    schema = node.schema
    if schema is None or schema.written is not None or schema.viewed is not None:
        return None
    pytree: Any = torch_package().utils._pytree
    leaves, structure = pytree.tree_flatten(dict(arguments))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, RelayExpr)]
    tensors = [leaves[place] for place in places]
    if any(tensor in node.scope.numbers or None in node.shape(tensor) for tensor in tensors):
        return None
    known = [None if isinstance(leaf, RelayExpr) else leaf for leaf in leaves]
    try:
        traced = _traced(node, known, structure, places, tensors)
    except Exception:  # noqa: BLE001 - whatever a definition of PyTorch raises, it cannot be used
        return None
    if traced is None:
        return None
    return GraphImporter(traced, node.scope, HIGHER_ORDER).convert(tensors)


def _traced(
    node: ScriptNode, leaves: list[Any], structure: Any, places: list[int], tensors: list[RelayExpr]
) -> Any:
    """A graph of operators that have converters, as a function of the tensors."""
    torch = torch_package()
    schema = node.schema
    assert schema is not None
    run, *_ = torch._C._get_operation_overload(schema.name, schema.overload)

    def call(*given: Any) -> Any:
        filled = list(leaves)
        for place, value in zip(places, given, strict=True):
            filled[place] = value
        named = torch.utils._pytree.tree_unflatten(filled, structure)
        return run(
            *(named[name] for name in schema.positional), **{name: named[name] for name in schema.named}
        )

    examples = [
        torch.empty(node.shape(tensor), dtype=getattr(torch, node.dtype(tensor))) for tensor in tensors
    ]
    table: dict[Any, Any] = {}
    function: Any = call
    for _ in range(ROUNDS):
        make = torch.fx.experimental.proxy_tensor.make_fx(function, table, tracing_mode="fake")
        with torch.no_grad():
            traced = make(*examples)
        if function is call and needs_functionalization(traced.graph):
            function = torch.func.functionalize(call, remove="mutations")
            continue
        missing = operators_without_converter(traced)
        if not missing:
            return traced
        found = definitions_of(missing - table.keys())
        if not found:
            return None
        table |= found
    return None
