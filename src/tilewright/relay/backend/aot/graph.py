"""A graph in the graph executor's text form, read and checked for compilation.

Nothing in the text is trusted: whatever is wrong with it is a ``ModelError`` that names the node.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.support.dtype import DataType
from tilewright.support.errors import ModelError, TilewrightError

NO_OPERATION = "__nop"
"""The function of a node that runs nothing: its outputs are parts of its inputs, or its inputs parts of its output."""


@dataclass(frozen=True)
class GraphTensor:
    """What a node gives: a shape and a data type."""

    shape: tuple[int, ...]
    dtype: DataType

    @property
    def num_bytes(self) -> int:
        """The size in memory."""
        return math.prod(self.shape) * self.dtype.itemsize * self.dtype.lanes


@dataclass(frozen=True)
class GraphNode:
    """An input of the graph (``function`` is None), or a call. Tensors are numbers into ``Graph.tensors``."""

    name: str
    function: str | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    flatten: bool = False


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they run, with every tensor that they give."""

    nodes: tuple[GraphNode, ...]
    tensors: tuple[GraphTensor, ...]
    arguments: tuple[int, ...]
    """The nodes that are inputs or parameters, in the graph's order."""
    outputs: tuple[int, ...]
    """The tensors that the graph gives."""
    offsets: tuple[int, ...] = ()
    """For each tensor, where it begins in memory that it shares with others, in bytes; without any, all at 0."""

    def offset(self, tensor: int) -> int:
        """Where a tensor begins in the memory that it shares."""
        return self.offsets[tensor] if self.offsets else 0


def read_graph(text: str) -> Graph:
    """The graph of a text in the form that ``GraphExecutor`` takes."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"the graph is not JSON: {problem}") from None
    written = _list(root, "nodes")
    nodes: list[GraphNode] = []
    for number, node in enumerate(written):
        first = nodes[-1].outputs[-1] + 1 if nodes else 0
        nodes.append(_node(node, number, nodes, first))
    count = nodes[-1].outputs[-1] + 1 if nodes else 0
    shapes, dtypes = _attribute(root, "shape", count), _attribute(root, "dltype", count)
    tensors = tuple(_tensor(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    arguments = tuple(_argument(value, nodes) for value in _list(root, "arg_nodes"))
    outputs = tuple(_entry(value, nodes, "an output of the graph") for value in _list(root, "heads"))
    if not outputs:
        raise ModelError("the graph has no outputs")
    return Graph(tuple(nodes), tensors, arguments, outputs, _offsets(root, tensors))


def _offsets(root: dict[str, Any], tensors: Sequence[GraphTensor]) -> tuple[int, ...]:
    if "tensor_offset" not in root["attrs"]:
        return ()
    offsets = _attribute(root, "tensor_offset", len(tensors))
    for tensor, offset in zip(tensors, offsets, strict=True):
        element = tensor.dtype.itemsize * tensor.dtype.lanes
        if type(offset) is not int or not 0 <= offset < 1 << 62 or offset % element:
            raise ModelError(
                f"a tensor of the graph begins at {offset!r} in its storage: that is no place for it"
            )
    return tuple(offsets)


def _list(root: Any, name: str) -> list[Any]:
    value = root.get(name) if isinstance(root, dict) else None
    if not isinstance(value, list):
        raise ModelError(f"the graph has no list {name!r}")
    return value


def _attribute(root: dict[str, Any], name: str, count: int) -> list[Any]:
    attributes = root.get("attrs")
    pair = attributes.get(name) if isinstance(attributes, dict) else None
    if not (
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list) and len(pair[1]) == count
    ):
        raise ModelError(
            f"the graph's attribute {name!r} is not a list of {count} values, one for each tensor"
        )
    return pair[1]


def _node(node: Any, number: int, before: Sequence[GraphNode], first: int) -> GraphNode:
    if not isinstance(node, dict) or node.get("op") not in ("null", "tvm_op"):
        raise ModelError(f"node {number} of the graph is neither an input ('null') nor a call ('tvm_op')")
    name = str(node.get("name", ""))
    if node["op"] == "null":
        return GraphNode(name, None, (), (first,))
    attributes = node.get("attrs")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("func_name"), str):
        raise ModelError(f"the graph's node {name!r} does not name its function")
    written = str(attributes.get("num_outputs", "1"))
    if not written.isdecimal() or not 0 < int(written) <= 65536:
        raise ModelError(f"the graph's node {name!r} has {written} outputs")
    what = f"an input of the graph's node {name!r}"
    inputs = node.get("inputs", [])
    if not isinstance(inputs, list):
        raise ModelError(f"the inputs of the graph's node {name!r} are not a list")
    return GraphNode(
        name,
        attributes["func_name"],
        tuple(_entry(value, before, what) for value in inputs),
        tuple(range(first, first + int(written))),
        str(attributes.get("flatten_data", "0")) == "1",
    )


def _entry(value: Any, nodes: Sequence[GraphNode], what: str) -> int:
    """The tensor that [node, output, version] says."""
    if isinstance(value, list) and len(value) >= 2 and all(type(part) is int for part in value[:2]):
        node, output = value[:2]
        if 0 <= node < len(nodes) and 0 <= output < len(nodes[node].outputs):
            return nodes[node].outputs[output]
    raise ModelError(f"{what} is {value!r}, which no node before it gives")


def _argument(value: Any, nodes: Sequence[GraphNode]) -> int:
    if type(value) is not int or not 0 <= value < len(nodes) or nodes[value].function is not None:
        raise ModelError(f"the graph's list of inputs has {value!r}, which is not an input node")
    return value


def _tensor(shape: Any, dtype: Any) -> GraphTensor:
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ModelError(f"a tensor of the graph has the shape {shape!r}: constant sizes are needed")
    try:
        made = DataType(dtype)
    except (TilewrightError, TypeError, ValueError) as problem:
        raise ModelError(f"a tensor of the graph has a data type that is none: {problem}") from None
    tensor = GraphTensor(tuple(shape), made)
    if made.is_handle or tensor.num_bytes >= 1 << 62:
        raise ModelError(f"a tensor of the graph, {made} of shape {shape}, does not fit any memory")
    return tensor
