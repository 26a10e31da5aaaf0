"""A graph in the graph executor's text form, read and checked.

Nothing in the text is trusted: whatever is wrong with it is a ``ModelError`` that names the node.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.backend.graph import Entry, ExecutorGraph, GraphNode, byte_size
from tilewright.support.dtype import DataType
from tilewright.support.errors import ModelError, TilewrightError

_MOST_BYTES = 1 << 62


def read_graph(text: str) -> ExecutorGraph:
    """The graph of a text in the form that ``GraphExecutor`` takes. It has the kernels' names, not the kernels."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"the graph is not JSON: {problem}") from None
    written = _list(root, "nodes")
    counts = [_outputs(node, number) for number, node in enumerate(written)]
    starts = list(accumulate(counts, initial=0))
    shapes, dtypes = _attribute(root, "shape", starts[-1]), _attribute(root, "dltype", starts[-1])
    tensors = [_tensor(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    offsets = _offsets(root, tensors)
    nodes: list[GraphNode] = []
    for number, node in enumerate(written):
        made = _node(node, nodes)
        made.outputs = tensors[starts[number] : starts[number + 1]]
        nodes.append(made)
        if made.is_view:
            _settle(
                made,
                offsets[starts[number] :],
                nodes,
                lambda entry: offsets[starts[entry.node] + entry.output],
            )
    _check_arguments(_list(root, "arg_nodes"), nodes)
    outputs = [_entry(value, nodes, "an output of the graph") for value in _list(root, "heads")]
    if not outputs:
        raise ModelError("the graph has no outputs")
    return ExecutorGraph(nodes, outputs, {}, output_names=_output_names(root, len(outputs)))


def _output_names(root: dict[str, Any], count: int) -> list[str]:
    """The names of the outputs; empty for a graph that has none."""
    metadata = root.get("metadata")
    names = metadata.get("output_names") if isinstance(metadata, dict) else None
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"the names of the graph's outputs are {names!r}, not a list of texts")
    if len(names) != count or len(set(names)) != count:
        raise ModelError(f"the graph has {count} outputs, which need as many different names, not {names}")
    return names


def _settle(node: GraphNode, own: Sequence[int], nodes: Sequence[GraphNode], offset_of: Any) -> None:
    """Record where the results of a view are: in its argument, or its arguments in the result."""
    what = f"the graph's node {node.name!r}"
    if not node.inputs:
        raise ModelError(f"{what} is a view of a tensor, but has no input")
    sizes = [byte_size(nodes[entry.node].outputs[entry.output]) for entry in node.inputs]
    results = [byte_size(kind) for kind in node.outputs]
    if len(sizes) > 1 and len(results) == 1 and sizes[0] < results[0]:
        at = own[0]
        for entry, size in zip(node.inputs, sizes, strict=True):
            if offset_of(entry) != at:
                raise ModelError(f"{what} joins tensors that do not follow one another in memory")
            at += size
        if at - own[0] != results[0]:
            raise ModelError(f"{what} joins tensors to one of another size")
        node.joined = list(range(len(sizes)))
        return
    node.view_offsets = []
    for offset, size in zip(own, results, strict=False):
        distance = offset - offset_of(node.inputs[0])
        if distance == 0 and len(results) == 1 and size != sizes[0]:
            raise ModelError(f"{what} is a view of another size than its tensor")
        if distance < 0 or distance + size > sizes[0]:
            raise ModelError(f"{what} is a view of bytes outside its tensor")
        node.view_offsets.append(distance)


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


def _outputs(node: Any, number: int) -> int:
    """How many tensors a node produces."""
    if not isinstance(node, dict) or node.get("op") not in ("null", "tvm_op"):
        raise ModelError(f"node {number} of the graph is neither an input ('null') nor a call ('tvm_op')")
    attributes = node.get("attrs") if node["op"] == "tvm_op" else {}
    written = str(attributes.get("num_outputs", "1")) if isinstance(attributes, dict) else "1"
    if not written.isdecimal() or not 0 < int(written) <= 65536:
        raise ModelError(f"the graph's node {str(node.get('name', ''))!r} has {written} outputs")
    return int(written)


def _node(node: dict[str, Any], before: Sequence[GraphNode]) -> GraphNode:
    name = str(node.get("name", ""))
    if node["op"] == "null":
        return GraphNode(name, [])
    attributes = node.get("attrs")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("func_name"), str):
        raise ModelError(f"the graph's node {name!r} does not name its function")
    what = f"an input of the graph's node {name!r}"
    inputs = node.get("inputs", [])
    if not isinstance(inputs, list):
        raise ModelError(f"the inputs of the graph's node {name!r} are not a list")
    is_flat = str(attributes.get("flatten_data", "0")) == "1"
    entries = [_entry(value, before, what) for value in inputs]
    return GraphNode(name, [], entries, attributes["func_name"], is_flat=is_flat)


def _entry(value: Any, nodes: Sequence[GraphNode], what: str) -> Entry:
    """The tensor that [node, output, version] names."""
    if isinstance(value, list) and len(value) >= 2 and all(type(part) is int for part in value[:2]):
        node, output = value[:2]
        if 0 <= node < len(nodes) and 0 <= output < len(nodes[node].outputs):
            return Entry(node, output)
    raise ModelError(f"{what} is {value!r}, which no earlier node produces")


def _check_arguments(arguments: list[Any], nodes: Sequence[GraphNode]) -> None:
    for value in arguments:
        if type(value) is not int or not 0 <= value < len(nodes) or nodes[value].kernel is not None:
            raise ModelError(f"the graph's list of inputs has {value!r}, which is not an input node")
    for number, node in enumerate(nodes):
        if node.kernel is None and number not in arguments:
            raise ModelError(f"the graph's list of inputs lacks the input node {node.name!r}")


def _offsets(root: dict[str, Any], tensors: Sequence[TensorType]) -> list[int]:
    """Where each tensor begins in memory that it shares with others, in bytes."""
    if "tensor_offset" not in root["attrs"]:
        return [0] * len(tensors)
    offsets = _attribute(root, "tensor_offset", len(tensors))
    for tensor, offset in zip(tensors, offsets, strict=True):
        element = tensor.dtype.itemsize * tensor.dtype.lanes
        if type(offset) is not int or not 0 <= offset < _MOST_BYTES or offset % element:
            raise ModelError(
                f"a tensor of the graph begins at {offset!r} in its storage, which is not aligned to it"
            )
    return offsets


def _tensor(shape: Any, dtype: Any) -> TensorType:
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ModelError(f"a tensor of the graph has the shape {shape!r}: constant sizes are needed")
    try:
        made = DataType(dtype)
    except (TilewrightError, TypeError, ValueError) as problem:
        raise ModelError(f"a tensor of the graph has an unknown data type: {problem}") from None
    elements = 1
    for extent in shape:
        elements *= extent
    if made.is_handle or elements * made.itemsize * made.lanes >= _MOST_BYTES:
        raise ModelError(f"a tensor of the graph, {made} of shape {shape}, does not fit any memory")
    return TensorType(shape, str(made))
