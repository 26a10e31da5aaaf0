"""What an ONNX file says of itself: who made it, in which version, its operators, its weights, its inputs and outputs.

Nothing is converted, so that models with operators that cannot be are described too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from tilewright.relay.frontend.common.description import Described, Tensor, Weights
from tilewright.relay.frontend.onnx.reading import read_model
from tilewright.relay.frontend.onnx.tensors import dtype_name, stored_bytes
from tilewright.support.errors import ModelError

_STANDARD = ("", "ai.onnx")
_NUMBER_BYTES = {"value_float": 4, "value_floats": 4, "value_int": 8, "value_ints": 8}


def describe(path: str) -> Described:
    """The description of a file."""
    with read_model(path) as model:
        proto = model.proto
        constants = {tensor.name for tensor in proto.graph.initializer}
        constants |= {tensor.values.name for tensor in proto.graph.sparse_initializer}
        nodes = list(_nodes(proto))
        return Described(
            format="ONNX",
            producer=" ".join(part for part in (proto.producer_name, proto.producer_version) if part),
            versions={
                "IR": proto.ir_version,
                **{f"opset {one.domain}".rstrip(): one.version for one in _opsets(proto)},
            },
            operators=Counter(_operator(node) for node in nodes),
            weights={
                "initializers": _sum(_initializer_sizes(proto)),
                "Constant nodes": _sum(size for node in nodes for size in _constant_sizes(node)),
            },
            inputs=[_tensor(info) for info in proto.graph.input if info.name not in constants],
            outputs=[_tensor(info) for info in proto.graph.output],
        )


def _opsets(proto: Any) -> list[Any]:
    """The versions of sets of operators, the standard one first, under an empty name."""
    for one in proto.opset_import:
        if one.domain in _STANDARD:
            one.domain = ""
    return sorted(proto.opset_import, key=lambda one: one.domain)


def _operator(node: Any) -> str:
    return node.op_type if node.domain in _STANDARD else f"{node.domain}.{node.op_type}"


def _graphs(proto: Any) -> Iterator[Any]:
    """The graph, and the graphs inside its nodes and those of the model's functions."""
    pending = [proto.graph]
    nodes = [node for function in proto.functions for node in function.node]
    while pending or nodes:
        if pending:
            graph = pending.pop()
            yield graph
            nodes += graph.node
        for node in nodes:
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else []
                pending += attribute.graphs
        nodes = []


def _nodes(proto: Any) -> Iterator[Any]:
    """Every node: those of functions count once, however often they are called."""
    for graph in _graphs(proto):
        yield from graph.node
    for function in proto.functions:
        yield from function.node


def _initializer_sizes(proto: Any) -> Iterator[tuple[int, int]]:
    for graph in _graphs(proto):
        for tensor in graph.initializer:
            yield _size(tensor)
        for sparse in graph.sparse_initializer:
            yield _sparse_size(sparse)


def _constant_sizes(node: Any) -> Iterator[tuple[int, int]]:
    """Elements and bytes of the value of a Constant."""
    if node.op_type != "Constant" or node.domain not in _STANDARD:
        return
    for attribute in node.attribute:
        if attribute.name == "value":
            yield _size(attribute.t)
        elif attribute.name == "sparse_value":
            yield _sparse_size(attribute.sparse_tensor)
        elif attribute.name in _NUMBER_BYTES:
            count = max(len(attribute.floats), len(attribute.ints)) if attribute.name.endswith("s") else 1
            yield count, count * _NUMBER_BYTES[attribute.name]
        elif attribute.name in ("value_string", "value_strings"):
            texts = [attribute.s] if attribute.name == "value_string" else list(attribute.strings)
            yield len(texts), sum(map(len, texts))


def _size(tensor: Any) -> tuple[int, int]:
    """Elements and bytes of a tensor."""
    if tensor.string_data:
        return len(tensor.string_data), sum(map(len, tensor.string_data))
    return prod(tensor.dims), stored_bytes(tensor)


def _sparse_size(sparse: Any) -> tuple[int, int]:
    """What is stored of a sparse tensor: its values and their indices."""
    elements, values = _size(sparse.values)
    return elements, values + _size(sparse.indices)[1]


def _sum(sizes: Iterator[tuple[int, int]]) -> Weights:
    found = list(sizes)
    return Weights(len(found), sum(elements for elements, _ in found), sum(size for _, size in found))


def _tensor(info: Any) -> Tensor:
    """Name, element type and shape, with names for open dimensions, as far as the file says."""
    kind = info.type
    if not kind.HasField("tensor_type"):
        return Tensor(info.name, str(kind.WhichOneof("value") or "unknown").removesuffix("_type"), None)
    try:
        dtype = dtype_name(kind.tensor_type.elem_type) if kind.tensor_type.elem_type else "unknown"
    except ModelError:
        dtype = f"type {kind.tensor_type.elem_type}"
    if not kind.tensor_type.HasField("shape"):
        return Tensor(info.name, dtype, None)
    return Tensor(info.name, dtype, tuple(_extent(extent) for extent in kind.tensor_type.shape.dim))


def _extent(extent: Any) -> int | str | None:
    if extent.HasField("dim_value") and extent.dim_value >= 0:
        return int(extent.dim_value)
    return str(extent.dim_param) or None
