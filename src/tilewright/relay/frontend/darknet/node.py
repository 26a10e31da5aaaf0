"""A layer of a Darknet network, as the code that converts it sees it. Options are text."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.darknet.configuration import Section
from tilewright.relay.frontend.darknet.weights import Array, Weights


class LayerNode(GraphNode):
    """A layer with its options, the results of the layers before it, and the weights that have not been taken."""

    def __init__(
        self, section: Section, position: int, results: Sequence[Expr], scope: Scope, weights: Weights
    ) -> None:
        super().__init__(section.kind, layer_name(position), scope, section.options)
        self.position = position
        self.results = results
        self.weights = weights
        self.extra: list[Expr] = []
        """What the network gives besides the layer's result: the sizes and anchors of detectors."""

    def integer(self, name: str, default: int) -> int:
        """An option that is an integer."""
        text = self.text(name, str(default))
        try:
            return int(text)
        except ValueError:
            raise self.fail(f"the option {name!r} is {text!r}, not an integer") from None

    def real(self, name: str, default: float) -> float:
        """An option that is a number."""
        text = self.text(name, str(default))
        try:
            return float(text)
        except ValueError:
            raise self.fail(f"the option {name!r} is {text!r}, not a number") from None

    def text(self, name: str, default: str) -> str:
        """An option that is a word."""
        return str(self.attributes.get(name, default))

    def integers(self, name: str) -> list[int]:
        """An option that is a list of integers; none where it is not there."""
        return [int(one) for one in self._listed(name)]

    def reals(self, name: str) -> list[float]:
        """An option that is a list of numbers; none where it is not there."""
        return [float(one) for one in self._listed(name)]

    def _listed(self, name: str) -> list[str]:
        return [one for one in self.text(name, "").split(",") if one]

    def take(self, shape: Sequence[int], name: str) -> Array:
        """The next weights of the file."""
        return self.weights.take(shape, f"the {name} of {self.where}")

    def kept(self, name: str, value: Array) -> Expr:
        """Weights as a parameter."""
        return self.scope.stored(f"{self.name}_{name}", value)

    def earlier(self, number: int) -> Expr:
        """The result of another layer, counted from this one if negative."""
        place = self.position + number if number < 0 else number
        if not 0 <= place < self.position:
            raise self.fail(f"layer {number} is asked for, and there are {self.position} before this one")
        return self.results[place]

    def image(self, data: Expr) -> Expr:
        """Data with axes of space, of one where they have none."""
        return data if self.rank(data) == 4 else relay.reshape(data, (*self.static_shape(data), 1, 1))


def layer_name(position: int) -> str:
    """A layer in messages and before the names of its parameters: Darknet numbers them."""
    return f"layer_{position}"
