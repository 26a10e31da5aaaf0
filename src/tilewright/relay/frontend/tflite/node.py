"""An operator of a TFLite model, as the code that converts it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.relay.frontend.common.graph_node import GraphNode
from tilewright.relay.frontend.tflite.model import Operator, Subgraph, Tensor

if TYPE_CHECKING:
    from tilewright.relay.frontend.tflite.importer import GraphImporter


class LiteNode(GraphNode):
    """An operator with the tensors that it reads (None for one left out) and writes."""

    def __init__(self, operator: Operator, subgraph: Subgraph, graph: GraphImporter) -> None:
        self.inputs: list[Tensor | None] = [
            None if place < 0 else subgraph.tensors[place] for place in operator.inputs
        ]
        self.outputs: list[Tensor] = [subgraph.tensors[place] for place in operator.outputs if place >= 0]
        super().__init__(operator.name, operator_name(operator, subgraph), graph.scope, operator.options)
        self.operator = operator
        self.graph = graph

    def input(self, place: int) -> Tensor:
        """A tensor that has to be there."""
        found = self.inputs[place] if place < len(self.inputs) else None
        if found is None:
            raise self.fail(f"input {place} is missing")
        return found


def operator_name(operator: Operator, subgraph: Subgraph) -> str:
    """An operator in messages: TFLite gives names to tensors only."""
    place = next((one for one in operator.outputs if one >= 0), None)
    return f"operator {operator.position}" if place is None else subgraph.tensors[place].name
