"""The operators of a model: each distinct convolution, product, pooling, softmax or norm as a separate model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

KINDS = {
    "Conv": "convolution",
    "ConvTranspose": "transposed convolution",
    "MatMul": "product",
    "Gemm": "product",
    "LSTM": "recurrent",
    "MaxPool": "pooling",
    "AveragePool": "pooling",
    "GlobalAveragePool": "pooling",
    "ReduceMean": "reduction",
    "Softmax": "softmax",
    "LayerNormalization": "norm",
    "BatchNormalization": "norm",
}


@dataclass(frozen=True)
class Operator:
    """An operator with the shapes of its inputs, how often a model has it, and the folder of its files."""

    name: str
    kind: str
    count: int
    folder: Path


def label(node: Any, shapes: list[list[int]]) -> str:
    """A readable label: a convolution by its sizes and strides, others by their inputs' shapes."""
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    sizes = " by ".join("x".join(map(str, shape)) for shape in shapes[:2])
    extra = []
    if node.op_type in ("Conv", "ConvTranspose") and attributes.get("group", 1) > 1:
        extra.append("depthwise" if attributes["group"] == shapes[0][1] else f"groups {attributes['group']}")
    if node.op_type in ("MaxPool", "AveragePool"):
        extra.append("window " + "x".join(map(str, attributes["kernel_shape"])))
    if any(step != 1 for step in attributes.get("strides", [])):
        extra.append(f"stride {attributes['strides'][0]}")
    if any(step != 1 for step in attributes.get("dilations", [])):
        extra.append(f"dilation {attributes['dilations'][0]}")
    return " ".join([node.op_type, sizes, *extra])


def known_shapes(graph: Any) -> dict[str, tuple[int, list[int]]]:
    """The element type and shape of every value of which both are known."""
    found = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.tensor_type
        extents = [one.dim_value if one.HasField("dim_value") else -1 for one in kind.shape.dim]
        if kind.HasField("shape") and -1 not in extents:
            found[value.name] = (kind.elem_type, extents)
    return found


def distinct_operators(model: Path, scratch: Path) -> Iterator[Operator]:
    """Write each operator once, with its weights and random inputs, as the latency bench writes models."""
    whole = shape_inference.infer_shapes(onnx.load(model), data_prop=True)
    graph = whole.graph
    weights = {one.name: one for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            weights.update((node.output[0], one.t) for one in node.attribute if one.name == "value")
    values = known_shapes(graph)
    groups: dict[str, list[Any]] = {}
    for node in graph.node:
        names = [name for name in node.input if name]
        if node.op_type in KINDS and all(name in values or name in weights for name in names):
            shapes = [list(weights[name].dims) if name in weights else values[name][1] for name in names]
            given = [name in weights for name in names]
            attributes = [one.SerializeToString().hex() for one in node.attribute]
            key = json.dumps([node.op_type, shapes, given, len(node.input), attributes])
            groups.setdefault(key, []).append((node, shapes))
    for number, members in enumerate(groups.values()):
        node, shapes = members[0]
        folder = scratch / str(number)
        folder.mkdir(parents=True)
        write_operator(node, weights, values, whole.opset_import, folder)
        yield Operator(label(node, shapes), KINDS[node.op_type], len(members), folder)


def write_operator(node: Any, weights: Any, values: Any, opsets: Any, folder: Path) -> None:
    """One node as a model, in the folder."""
    generator = np.random.default_rng(0)
    open_names = list(dict.fromkeys(name for name in node.input if name and name not in weights))
    inputs = [helper.make_tensor_value_info(name, *values[name]) for name in open_names]
    outputs = [
        helper.make_tensor_value_info(name, *values[name])
        if name in values
        else helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in node.output
        if name
    ]
    named = []
    for name in dict.fromkeys(name for name in node.input if name in weights):
        # The value of a Constant node has no name.
        named.append(numpy_helper.from_array(numpy_helper.to_array(weights[name]), name))
    graph = helper.make_graph([node], "operator", inputs, outputs, named)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "model.onnx")
    arrays: dict[str, Any] = {}
    for name in open_names:
        kind, shape = values[name]
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        arrays[name] = generator.standard_normal(shape).astype(dtype)
    np.savez(folder / "inputs.npz", **arrays)
    about = {"name": node.op_type, "outputs": [one.name for one in outputs]}
    (folder / "about.json").write_text(json.dumps(about))
