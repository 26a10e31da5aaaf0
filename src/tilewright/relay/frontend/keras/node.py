"""A layer of a Keras model, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.keras.package import keras_package

LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
"""Channels last, by the number of spatial axes."""
FIRST_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class LayerNode(GraphNode):
    """A call of a layer. ``inside`` converts a layer or model that this one contains."""

    def __init__(self, layer: Any, scope: Scope, inside: Callable[[Any, Sequence[Any]], Any]) -> None:
        super().__init__(type(layer).__name__, str(layer.name), scope)
        self.layer = layer
        self.inside = inside

    def weight(self, name: str) -> Expr | None:
        """A weight of the layer, None if it has none of that name."""
        held = getattr(self.layer, name, None)
        return None if held is None else self.stored(name, held)

    def required(self, name: str) -> Expr:
        """A weight that the layer has to have."""
        found = self.weight(name)
        if found is None:
            raise self.fail(f"the layer has no {name}: build the model first")
        return found

    def array(self, held: Any) -> np.ndarray[Any, Any]:
        """The value of a variable."""
        return np.asarray(keras_package().ops.convert_to_numpy(held))

    def stored(self, name: str, held: Any) -> Expr:
        """A variable as a parameter."""
        return self.scope.stored(f"{self.layer.name}/{name}", self.array(held))

    def layout_of(self, space: int) -> str:
        """The order of the axes of the layer's data."""
        first = getattr(self.layer, "data_format", "channels_last") == "channels_first"
        return (FIRST_LAYOUTS if first else LAYOUTS)[space]

    def with_window(self, layout: str, strides: Any, dilations: Any = 1, padding: Any = "valid") -> LayerNode:
        """The node with a window under TensorFlow's names of attributes."""
        space = [place for place, letter in enumerate(layout) if letter in "DHW"]

        def everywhere(given: Any) -> list[int]:
            numbers = [int(given)] * len(space) if isinstance(given, int) else [int(one) for one in given]
            found = [1] * len(layout)
            for place, number in zip(space, numbers, strict=True):
                found[place] = number
            return found

        self.attributes.update(
            strides=everywhere(strides),
            dilations=everywhere(dilations),
            padding="SAME" if padding == "same" else "VALID",
            data_format=layout,
        )
        return self
