"""From a TFLite model to graph-level expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.common import Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.tflite import ops as _converters
from tilewright.relay.frontend.tflite.model import Model, Operator, Subgraph
from tilewright.relay.frontend.tflite.node import LiteNode, operator_name
from tilewright.relay.frontend.tflite.quantization import dequantized, is_quantized, quantized, requantized
from tilewright.relay.frontend.tflite.registry import MOVING, find_own, find_shared
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters


class GraphImporter:
    """Converts one graph of a model; a graph inside it, of a branch or loop, has an importer of its own."""

    def __init__(
        self, model: Model, subgraph: Subgraph, scope: Scope, overrides: Mapping[str, Callable[[Any], Any]]
    ) -> None:
        self.model = model
        self.subgraph = subgraph
        self.scope = scope
        self.overrides = overrides
        self.values: dict[int, Any] = {}

    # Values

    def tensor(self, place: int) -> Any:
        """The expression of a tensor."""
        if place not in self.values:
            tensor = self.subgraph.tensors[place]
            if tensor.value is None:
                raise ModelError(f"the tensor {tensor.name!r} is read before any operator writes it")
            self.values[place] = self.scope.stored(tensor.name, tensor.value)
        return self.values[place]

    def input_variables(self, shapes: Mapping[str, Any], dtypes: Mapping[str, str]) -> list[Var]:
        """Variables for the inputs."""
        made = []
        for place in self.subgraph.inputs:
            tensor = self.subgraph.tensors[place]
            shape = shapes.get(tensor.name, tensor.shape)
            made.append(
                Var(tensor.name, input_type(tensor.name, shape, dtypes.get(tensor.name, tensor.dtype)))
            )
            self.values[place] = made[-1]
        return made

    def inside(self, number: int, inputs: Sequence[Expr]) -> list[Expr]:
        """The results of another graph of the model for these inputs."""
        if not 0 <= number < len(self.model.subgraphs):
            raise ModelError(f"the model has no graph {number}")
        inner = GraphImporter(self.model, self.model.subgraphs[number], self.scope, self.overrides)
        inner.values.update(zip(inner.subgraph.inputs, inputs, strict=True))
        return inner.convert()

    # Conversion

    def convert(self) -> list[Expr]:
        """Convert the operators; the expressions of the outputs."""
        for operator in self.subgraph.operators:
            self._convert_operator(operator)
        return [self.tensor(place) for place in self.subgraph.outputs]

    def _convert_operator(self, operator: Operator) -> None:
        node = LiteNode(operator, self.subgraph, self)
        with node.conversion():
            inputs = [None if place < 0 else self.tensor(place) for place in operator.inputs]
            results = self._results(node, inputs)
            for place, result in zip(operator.outputs, results, strict=False):
                if place >= 0 and result is not None:
                    self.values[place] = self.scope.folder.settled(result)

    def _results(self, node: LiteNode, inputs: list[Any]) -> list[Any]:
        override = self.overrides.get(node.op_type)
        return _listed(override(node)) if override is not None else self._usual(node, inputs)

    def usual_results(self, node: LiteNode) -> list[Any]:
        """The results of an operator of this graph, whatever overrides it."""
        return self._usual(
            node, [None if place < 0 else self.tensor(place) for place in node.operator.inputs]
        )

    def _usual(self, node: LiteNode, inputs: list[Any]) -> list[Any]:
        own = find_own(node.op_type)
        if own is not None:
            return _listed(own(node, *inputs))
        convert = find_shared(node.op_type)
        if convert is None:
            raise node.fail("the operator is not supported")
        if not any(is_quantized(tensor) for tensor in (*node.inputs, *node.outputs)):
            return _listed(convert(node, *inputs))
        if node.op_type in MOVING:
            return self._moved(node, convert, inputs)
        return self._through_numbers(node, convert, inputs)

    def _moved(self, node: LiteNode, convert: Any, inputs: list[Any]) -> list[Any]:
        """On integers. Inputs of other scales than the first are brought to it, results to their own."""
        first = next((tensor for tensor in node.inputs if is_quantized(tensor)), None)
        if first is None:
            return _listed(convert(node, *inputs))
        aligned = [
            requantized(node, data, tensor, first) if tensor is not None and is_quantized(tensor) else data
            for data, tensor in zip(inputs, node.inputs, strict=True)
        ]
        results = _listed(convert(node, *aligned))
        return [
            requantized(node, result, first, tensor) if is_quantized(tensor) else result
            for result, tensor in zip(results, node.outputs, strict=False)
        ]

    def _through_numbers(self, node: LiteNode, convert: Any, inputs: list[Any]) -> list[Any]:
        """On the numbers that integers stand for."""
        numbers = [
            dequantized(node, data, tensor) if tensor is not None and is_quantized(tensor) else data
            for data, tensor in zip(inputs, node.inputs, strict=True)
        ]
        results = _listed(convert(node, *numbers))
        return [
            quantized(node, result, tensor) if is_quantized(tensor) else result
            for result, tensor in zip(results, node.outputs, strict=False)
        ]


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]


def list_unsupported(model: Model, overrides: Collection[str] = ()) -> list[Unsupported]:
    """The operators of a model, in all its graphs, that cannot be converted."""
    return collect_unsupported(
        (operator.name, operator_name(operator, graph))
        for graph in model.subgraphs
        for operator in graph.operators
        if operator.name not in overrides
        and find_own(operator.name) is None
        and find_shared(operator.name) is None
    )


def new_scope() -> Scope:
    """The scope of a new module."""
    return Scope(IRModule())
