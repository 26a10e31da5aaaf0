"""A layer of a Caffe network, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.relay.frontend.caffe.net import Array, LayerEntry
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.common.protobuf import Message


class CaffeNode(GraphNode):
    """A layer with its weights."""

    def __init__(self, entry: LayerEntry, scope: Scope, weights: Sequence[Array]) -> None:
        super().__init__(entry.kind, entry.name, scope)
        self.entry = entry
        self.weights = weights

    @property
    def params(self) -> Message:
        """The message of the layer."""
        return self.entry.params

    def array(self, place: int, shape: Sequence[int] | None = None) -> Array:
        """One of the layer's weights, in a shape."""
        if place >= len(self.weights):
            raise self.fail(f"the layer has {len(self.weights)} weights and needs {place + 1}")
        found = self.weights[place]
        if shape is None:
            return found
        if found.size != prod(shape):
            raise self.fail(f"a weight of the shape {found.shape} does not fit {tuple(shape)}")
        return found.reshape(tuple(shape))

    def weight(self, place: int, shape: Sequence[int] | None = None) -> Expr:
        """One of the layer's weights as a parameter of the model."""
        return self.stored(self.array(place, shape), place)

    def stored(self, value: Array, place: int) -> Expr:
        """A tensor of the layer as a parameter of the model."""
        suffix = ("weight", "bias")[place] if place < 2 else str(place)
        return self.scope.stored(f"{self.name}_{suffix}", np.ascontiguousarray(value))

    def chosen_axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front."""
        return self.from_front(axis, max(rank, 1))
