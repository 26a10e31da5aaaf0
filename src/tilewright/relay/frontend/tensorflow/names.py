"""References to outputs of nodes: "node", "node:1" in graphs, "node:output:0" in functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from tilewright.support.errors import ModelError


@dataclass(frozen=True)
class Reference:
    """An output of a node."""

    node: str
    output: int = 0


class Named(Protocol):
    """A graph whose nodes have names."""

    nodes: dict[str, Any]
    library: Mapping[str, Any]


def parsed(reference: str, graph: Named) -> Reference:
    """The output that a reference names."""
    parts = reference.removeprefix("^").split(":")
    if len(parts) == 1:
        return Reference(parts[0])
    if len(parts) == 2:
        return Reference(parts[0], int(parts[1]))
    name, output, place = parts
    node = graph.nodes.get(name)
    if node is None:
        return Reference(name, int(place))
    return Reference(name, _first(node, output, graph.library) + int(place))


def _first(node: Any, output: str, library: Mapping[str, Any]) -> int:
    """Where a named output, which may be a list, begins among the outputs of a node."""
    signature = library[node.op].signature if node.op in library else _definition(node.op)
    begin = 0
    for argument in signature.output_arg:
        if argument.name == output:
            return begin
        begin += _count(argument, node)
    raise ModelError(f"node {node.name!r} ({node.op}) has no output {output!r}")


def _count(argument: Any, node: Any) -> int:
    if argument.number_attr:
        return int(node.attr[argument.number_attr].i)
    if argument.type_list_attr:
        return len(node.attr[argument.type_list_attr].list.type)
    return 1


@cache
def _definition(name: str) -> Any:
    from tensorflow.python.framework import op_def_registry

    found = op_def_registry.get(name)
    if found is None:
        raise ModelError(f"TensorFlow does not know the operator {name!r}")
    return found
