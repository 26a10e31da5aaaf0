"""Finding everything unsupported in a model before anything is converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.relay.frontend.common import Unsupported
from tilewright.relay.frontend.onnx.functions import function_schema
from tilewright.relay.frontend.onnx.node import node_name
from tilewright.relay.frontend.onnx.registry import find_converter
from tilewright.relay.frontend.onnx.tensors import onnx_package


@dataclass
class UnsupportedInOpset(Unsupported):
    """An operator of a domain that cannot be converted under the model's opset."""

    domain: str
    opset: int

    @property
    def label(self) -> str:
        """With its domain and its opset."""
        return f"{self.domain or 'ai.onnx'}.{self.operator} (opset {self.opset})"

    def as_json(self) -> dict[str, Any]:
        """With its domain and its opset."""
        return {
            "domain": self.domain or "ai.onnx",
            "operator": self.operator,
            "opset": self.opset,
            "count": self.count,
            "nodes": self.nodes,
        }


def list_unsupported(model: Any) -> list[UnsupportedInOpset]:
    """The operators of a model that cannot be converted, in the order in which they are met."""
    opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in model.opset_import}
    functions = {(one.domain, one.name): one for one in model.functions}
    found: dict[tuple[str, str, int], UnsupportedInOpset] = {}
    for node, versions in _nodes(model.graph, functions, opsets):
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = versions.get(domain, 1)
        if (node.domain, node.op_type) in functions or find_converter(
            domain, node.op_type, opset
        ) is not None:
            continue
        if _expands(domain, node.op_type, opset):
            continue
        entry = UnsupportedInOpset(node.op_type, domain, opset)
        found.setdefault((domain, node.op_type, opset), entry).nodes.append(node_name(node))
    return list(found.values())


def _nodes(
    graph: Any, functions: Mapping[tuple[str, str], Any], opsets: Mapping[str, int]
) -> Iterator[tuple[Any, Mapping[str, int]]]:
    """Every node of a graph, of the graphs inside it, and of the model's functions."""
    onnx = onnx_package()
    pending: list[tuple[Any, Mapping[str, int]]] = [(graph.node, opsets)]
    for function in functions.values():
        own = {**opsets, **{one.domain: one.version for one in function.opset_import}}
        pending.append((function.node, own))
    while pending:
        nodes, versions = pending.pop(0)
        for node in nodes:
            yield node, versions
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    pending.append((attribute.g.node, versions))
                elif attribute.type == onnx.AttributeProto.GRAPHS:
                    pending += [(inner.node, versions) for inner in attribute.graphs]


def _expands(domain: str, name: str, opset: int, depth: int = 0) -> bool:
    """True if a standard function defines the operator, in terms of operators that can be converted."""
    schema = function_schema(domain, name, opset)
    if schema is None or depth > 8:
        return False
    if not schema.has_function:
        return True
    return all(
        find_converter(node.domain, node.op_type, opset) is not None
        or _expands(node.domain, node.op_type, opset, depth + 1)
        for node in schema.function_body.node
    )
