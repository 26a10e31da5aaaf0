"""A layer of a Core ML network, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml.weights import weight_values

_HEAD: Final = ("name", "input", "output")


def layer_kind(layer: Message) -> str:
    """Which kind of layer this is: the field that holds its parameters."""
    return next((name for name in layer.given if name not in _HEAD), "")


class LayerNode(GraphNode):
    """A layer with its weights."""

    def __init__(self, layer: Message, kind: str, name: str, scope: Scope) -> None:
        super().__init__(kind, name, scope)
        self.layer = layer

    def weight(self, weights: Message, shape: Sequence[int], role: str) -> Expr:
        """Weights as a parameter of the model."""
        found = weight_values(weights, [int(size) for size in shape], f"{self.where}: {role}")
        return self.scope.stored(f"{self.name}_{role}", found)

    def channel_axis(self, data: Expr) -> int:
        """The axis of the channels: the first of images, after the batch."""
        rank = self.rank(data)
        return rank - 3 if rank >= 3 else rank - 1
