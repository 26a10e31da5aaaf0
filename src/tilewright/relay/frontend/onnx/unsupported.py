"""Finding everything unsupported in a model before anything is converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.relay.frontend.onnx.functions import function_schema
from tilewright.relay.frontend.onnx.registry import find_converter
from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import ModelError, OpNotImplemented


@dataclass
class Unsupported:
    """One operator that cannot be converted, and the nodes that use it."""

    domain: str
    operator: str
    opset: int
    nodes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many nodes use it."""
        return len(self.nodes)

    def text(self) -> str:
        """A line of the error."""
        shown = ", ".join(self.nodes[:4]) + (f" and {self.count - 4} more" if self.count > 4 else "")
        return f"  {self.domain or 'ai.onnx'}.{self.operator} (opset {self.opset}), {self.count}: {shown}"


class UnsupportedOperators(OpNotImplemented, ModelError):
    """A model has operators that cannot be converted; ``operators`` lists all of them."""

    def __init__(self, operators: list[Unsupported]) -> None:
        lines = "\n".join(each.text() for each in operators)
        nodes = sum(each.count for each in operators)
        super().__init__(
            f"{len(operators)} operators of the model ({nodes} nodes) are not supported:\n{lines}"
        )
        self.operators = operators


def list_unsupported(model: Any) -> list[Unsupported]:
    """The operators of a model that cannot be converted, in the order in which they are met."""
    opsets = {("" if one.domain == "ai.onnx" else one.domain): one.version for one in model.opset_import}
    functions = {(one.domain, one.name): one for one in model.functions}
    found: dict[tuple[str, str, int], Unsupported] = {}
    for node, versions in _nodes(model.graph, functions, opsets):
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = versions.get(domain, 1)
        if (node.domain, node.op_type) in functions or find_converter(
            domain, node.op_type, opset
        ) is not None:
            continue
        if _expands(domain, node.op_type, opset):
            continue
        entry = found.setdefault((domain, node.op_type, opset), Unsupported(domain, node.op_type, opset))
        entry.nodes.append(node.name or next(iter(node.output), "") or node.op_type)
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


def require_supported(model: Any) -> None:
    """Raise one error that names every operator that cannot be converted."""
    missing = list_unsupported(model)
    if missing:
        raise UnsupportedOperators(missing)
