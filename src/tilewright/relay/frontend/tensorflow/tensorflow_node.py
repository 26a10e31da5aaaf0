"""A node of a TensorFlow graph, with the graph that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.relay.frontend.common.graph_node import GraphNode

if TYPE_CHECKING:
    from tilewright.relay.frontend.tensorflow.importer import GraphImporter


class TensorFlowNode(GraphNode):
    """A node; ``graph`` converts the functions that it calls."""

    def __init__(self, proto: Any, attributes: dict[str, Any], graph: GraphImporter) -> None:
        super().__init__(str(proto.op), str(proto.name), graph.scope, attributes)
        self.proto = proto
        self.graph = graph
