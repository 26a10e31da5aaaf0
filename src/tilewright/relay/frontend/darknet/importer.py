"""From a Darknet network to graph-level expressions, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.relay.frontend.common import Unsupported, collect_unsupported
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.darknet import ops as _converters
from tilewright.relay.frontend.darknet.configuration import Section
from tilewright.relay.frontend.darknet.node import LayerNode, layer_name
from tilewright.relay.frontend.darknet.ops.activation import ACTIVATIONS
from tilewright.relay.frontend.darknet.registry import find_converter
from tilewright.relay.frontend.darknet.weights import Weights

assert _converters  # importing it registers the converters

_REFUSED_OPTIONS = (
    "xnor",
    "binary",
    "antialiasing",
    "deform",
    "tree",
    "share_index",
    "reverse",
    "flatten",
    "extra",
    "maxpool_depth",
    "weights_type",
)
"""Options that change what a layer computes, and that are not converted where they are on."""


def convert(layers: Sequence[Section], data: Expr, scope: Scope, weights: Weights) -> list[Expr]:
    """The outputs: the last layer's result, then what detectors give, the last detector first, as in TVM.

    A YOLO layer adds its mask, its anchors and its sizes, a region layer its anchors and sizes; one that is not the
    last layer adds its own result before them.
    """
    results: list[Expr] = []
    added: list[Expr] = []
    for position, section in enumerate(layers):
        node = LayerNode(section, position, results, scope, weights)
        convert_layer = find_converter(section.kind)
        if convert_layer is None:
            raise node.fail("the layer is not supported")
        with node.conversion():
            data = scope.folder.settled(convert_layer(node, data))  # type: ignore[assignment]
        results.append(data)
        if node.extra:
            own = [data] if position != len(layers) - 1 else []
            added = [*own, *node.extra, *added]
    return [data, *added]


def list_unsupported(layers: Sequence[Section]) -> list[Unsupported]:
    """The layers, options and activations that cannot be converted."""
    return collect_unsupported(_missing(layers))


def _missing(layers: Sequence[Section]) -> Iterator[tuple[str, str]]:
    for position, section in enumerate(layers):
        name = f"{layer_name(position)} (line {section.line})"
        if find_converter(section.kind) is None:
            yield section.kind, name
            continue
        for option in _REFUSED_OPTIONS:
            if section.options.get(option, "0") not in ("0", "none", ""):
                yield f"{section.kind} with {option}", name
        activation = section.options.get("activation", "linear")
        if activation not in ACTIVATIONS:
            yield f"the activation {activation!r}", name
