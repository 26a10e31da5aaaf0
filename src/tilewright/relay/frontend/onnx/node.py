"""The interface of a node for converters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.common import ModelNode
from tilewright.relay.frontend.onnx.checks import missing_input
from tilewright.relay.frontend.onnx.low_precision import LowPrecisionType

if TYPE_CHECKING:
    from tilewright.relay.frontend.onnx.importer import GraphImporter


class Node(ModelNode):
    """One node of a model: its attributes, its opset, and what is known of its inputs.

    ``graph`` converts the subgraphs that attributes hold.
    """

    def __init__(self, proto: Any, attributes: dict[str, Any], opset: int, graph: GraphImporter) -> None:
        super().__init__(str(proto.op_type), node_name(proto), attributes, graph.module)
        self.proto = proto
        self.opset = opset
        self.graph = graph

    @property
    def num_outputs(self) -> int:
        """The number of outputs, including unnamed ones."""
        return len(self.proto.output)

    def wants(self, output: int) -> bool:
        """True if an output is named, so that it may be used."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    def reason(self, error: BaseException) -> str:
        """A missing input, if there is one: it explains more than what it led to."""
        return missing_input(self.proto, self.opset) or super().reason(error)

    def low_precision(self, expr: RelayExpr) -> LowPrecisionType | None:
        """The low-precision type that a tensor carries, if it does."""
        return self.graph.low_precision.get(expr)

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of an input that is known now: a constant or an initializer. None where it is not known."""
        return None if expr is None else self.graph.known_value(expr)

    def partial(self, expr: RelayExpr) -> list[int | None] | None:
        """The known elements of a vector of integers; None if not even its length is known."""
        return self.graph.partial_value(expr)


def node_name(proto: Any) -> str:
    """The node's name, or the name of its first output where it has none."""
    return str(proto.name or next(iter(proto.output), "") or proto.op_type)
