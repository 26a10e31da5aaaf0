"""From a functional or sequential Keras model to graph-level expressions, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend.common import Unsupported, collect_unsupported
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.keras import ops as _converters
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.ops.activations import is_known
from tilewright.relay.frontend.keras.package import keras_package
from tilewright.relay.frontend.keras.registry import find_converter
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters


def functional_form(model: Any) -> Any:
    """The graph of layers of a model, None for a model that is a program of its own."""
    keras = keras_package()
    if isinstance(model, keras.Sequential):
        if not model.built:
            raise ModelError(f"the model {model.name!r} is not built: give it an Input, or call it once")
        return model._functional
    if not hasattr(model, "_nodes_by_depth"):
        return None
    # A functional model whose class has a call of its own is a program.
    return model if str(type(model).call.__module__).startswith("keras.") else None


def nodes_of(model: Any) -> Iterator[Any]:
    """The calls of operations in a functional model, each after those it depends on."""
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            if not node.is_input:
                yield node


class ModelImporter:
    """Converts a model and the models inside it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def model(self, model: Any, inputs: Sequence[Any]) -> Any:
        """The results of a functional model, nested as it has them."""
        graph = functional_form(model)
        if graph is None:
            raise ModelError(f"the model {model.name!r} is a program of its own, not a graph of layers")
        values: dict[int, Any] = {
            id(tensor): value for tensor, value in zip(graph.inputs, inputs, strict=True)
        }
        for node in nodes_of(graph):
            arguments = _mapped(node.arguments.args, values)
            named = {
                name: _mapped(value, values)
                for name, value in node.arguments.kwargs.items()
                if value is not None and name not in ("training", "mask")
            }
            made = self.called(node.operation, arguments, named)
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            for tensor, result in zip(node.outputs, results, strict=True):
                values[id(tensor)] = self._settled(result)
        return _mapped(graph._outputs_struct, values)

    def _settled(self, value: Any) -> Any:
        return self.scope.folder.settled(value) if isinstance(value, RelayExpr) else value

    def called(self, operation: Any, arguments: Sequence[Any], named: dict[str, Any] | None = None) -> Any:
        """The results of a layer, of an operation, or of a model inside the model."""
        keras = keras_package()
        if isinstance(operation, keras.Model):
            return self.model(operation, flat(arguments))
        node = LayerNode(operation, self.scope, lambda inner, inputs: self.called(inner, inputs))
        convert = find_converter(operation)
        if convert is None:
            raise node.fail("the layer is not supported")
        with node.conversion():
            return convert(node, *arguments, **(named or {}))


def flat(values: Any) -> list[Any]:
    """The values in nested lists and dictionaries, in order."""
    if isinstance(values, dict):
        return [one for value in values.values() for one in flat(value)]
    if isinstance(values, (list, tuple)):
        return [one for value in values for one in flat(value)]
    return [values]


def _mapped(structure: Any, values: dict[int, Any]) -> Any:
    """Symbolic tensors replaced by what stands for them."""
    if isinstance(structure, (list, tuple)):
        return type(structure)(_mapped(one, values) for one in structure)
    if isinstance(structure, dict):
        return {name: _mapped(one, values) for name, one in structure.items()}
    return values.get(id(structure), structure)


def list_unsupported(model: Any) -> list[Unsupported]:
    """The layers of a model, and of the models inside it, that cannot be converted."""
    return collect_unsupported(_missing(model))


def _missing(model: Any) -> Iterator[tuple[str, str]]:
    keras = keras_package()
    graph = functional_form(model)
    if graph is None:
        yield type(model).__name__, str(model.name)
        return
    for node in nodes_of(graph):
        operation = node.operation
        if node.arguments.kwargs.get("training"):
            yield f"{type(operation).__name__} in training", str(operation.name)
        elif isinstance(operation, keras.Model):
            yield from _missing(operation)
        else:
            yield from _missing_in_layer(operation)


def _missing_in_layer(layer: Any) -> Iterator[tuple[str, str]]:
    """A layer that cannot be converted, or what in it cannot."""
    keras = keras_package()
    name = str(layer.name)
    if find_converter(layer) is None:
        yield type(layer).__name__, name
    elif getattr(layer, "mask_zero", False):
        yield f"{type(layer).__name__} with mask_zero", name
    for attribute in ("activation", "recurrent_activation"):
        activation = getattr(layer, attribute, None)
        if isinstance(activation, keras.layers.Layer):
            yield from _missing_in_layer(activation)
        elif not is_known(activation):
            yield f"the activation {getattr(activation, '__name__', activation)!r}", name
    for attribute in ("layer", "forward_layer"):
        inner = getattr(layer, attribute, None)
        if isinstance(inner, keras.Model):
            yield from _missing(inner)
        elif isinstance(inner, keras.layers.Layer):
            yield from _missing_in_layer(inner)
