"""The last steps before a graph is written: biases become inputs of their layers, and what nobody reads is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.relay.backend.onnx_export.builder import GraphWriter

_WITH_BIAS = ("Conv", "ConvTranspose", "Gemm")


def tidy(graph: GraphWriter, outputs: Sequence[str]) -> None:
    """Tidy the nodes and constants of a graph with these outputs."""
    _join_biases(graph, outputs)
    _drop_unread(graph, outputs)


def _join_biases(graph: GraphWriter, outputs: Sequence[str]) -> None:
    """Other runtimes look for a layer and its bias in one node."""
    makers = {name: node for node in graph.nodes for name in node.output}
    reads = Counter(name for node in graph.nodes for name in node.input)
    reads.update(outputs)
    moved: dict[str, str] = {}
    for made, (data, bias) in graph.biases.items():
        layer = makers.get(data)
        if layer is None or layer.op_type not in _WITH_BIAS or len(layer.input) != 2 or reads[data] != 1:
            continue
        layer.input.append(bias)
        layer.output[0] = made
        moved[made] = data
    # Where the sum was, the bias has been computed.
    layers = {node.output[0]: node for node in graph.nodes if node.op_type in _WITH_BIAS}
    graph.nodes = [
        layers[node.output[0]] if node.op_type == "Add" and node.output[0] in moved else node
        for node in graph.nodes
        if not (node.op_type in _WITH_BIAS and node.output[0] in moved)
    ]


def _drop_unread(graph: GraphWriter, outputs: Sequence[str]) -> None:
    read = set(outputs)
    kept = []
    for node in reversed(graph.nodes):
        if any(name in read for name in node.output):
            kept.append(node)
            read.update(node.input)
    graph.nodes = kept[::-1]
    graph.initializers = [one for one in graph.initializers if one.name in read]
