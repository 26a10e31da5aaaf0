"""From the layers of a neural network to graph-level expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.ir.module import IRModule
from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.common import Unsupported, collect_unsupported
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml import layers as _converters
from tilewright.relay.frontend.coreml.features import input_variables
from tilewright.relay.frontend.coreml.layer import LayerNode, layer_kind
from tilewright.relay.frontend.coreml.registry import LAYERS
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters

_BGR: Final = ("blueBias", "greenBias", "redBias")


def list_unsupported(network: Message) -> list[Unsupported]:
    """The layers of a network that cannot be converted."""
    return collect_unsupported(
        (layer_kind(one) or "a layer without a kind", one.name)
        for one in network.layers
        if LAYERS.find(layer_kind(one)) is None
    )


def takes_arrays_as_they_are(network: Message) -> bool:
    """True if arrays have the rank that they have, not that of images."""
    return bool(network.arrayInputShapeMapping == "EXACT_ARRAY_MAPPING")


class NetworkImporter:
    """Converts a network whose inputs have these shapes."""

    def __init__(self, network: Message, description: Message, shapes: Mapping[str, Any]) -> None:
        self.network = network
        self.description = description
        self.scope = Scope(IRModule())
        variables = input_variables(description.input, shapes, takes_arrays_as_they_are(network))
        self.inputs: list[Var] = list(variables.values())
        self.values: dict[str, Expr] = dict(variables)

    def convert(self) -> tuple[list[Expr], list[str]]:
        """Convert the layers; the expressions and the names of the outputs."""
        for step in self.network.preprocessing:
            self._prepare(step)
        for layer in self.network.layers:
            self._layer(layer)
        names = [one.name for one in self.description.output if one.name in self.values]
        if not names:
            # Classifiers declare a label, which is text, and a dictionary of probabilities.
            names = list(self.network.layers[-1].output) if self.network.layers else []
        if not names:
            raise ModelError("the network has no outputs")
        return [self.values[name] for name in names], names

    def _prepare(self, step: Message) -> None:
        """What happens to an image before the first layer: a scale and a number for each channel, or a mean image."""
        name = step.featureName or (self.inputs[0].name_hint if self.inputs else "")
        feature = next((one for one in self.description.input if one.name == name), None)
        if feature is None:
            raise ModelError(f"the network prepares an input {name!r} that it does not have")
        node = LayerNode(step, "preprocessing", name, self.scope)
        data = self.values[name]
        with node.conversion():
            shape = node.static_shape(data)
            if step.has("meanImage"):
                mean = np.asarray(step.meanImage.meanImage, "float32").reshape(shape[1:])
                self.values[name] = relay.subtract(data, node.constant(mean, data))
                return
            scaler = step.scaler
            if shape[1] == 1:
                biases = [scaler.grayBias]
            else:
                order = _BGR[::-1] if feature.type.imageType.colorSpace == "RGB" else _BGR
                biases = [getattr(scaler, one) for one in order]
            scaled = relay.multiply(data, node.constant(scaler.channelScale, data))
            bias = np.asarray(biases, "float32").reshape(-1, 1, 1)
            self.values[name] = relay.add(scaled, node.constant(bias, data))

    def _layer(self, layer: Message) -> None:
        kind = layer_kind(layer)
        node = LayerNode(layer, kind, layer.name, self.scope)
        convert = LAYERS.find(kind)
        if convert is None:
            raise node.fail("the layer is not supported")
        with node.conversion():
            missing = [name for name in layer.input if name not in self.values]
            if missing:
                raise node.fail(f"the input {missing[0]!r} is not computed by a layer before it")
            made = convert(node, getattr(layer, kind), *(self.values[name] for name in layer.input))
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            if len(results) < len(layer.output):
                raise node.fail(f"the layer has {len(layer.output)} outputs and {len(results)} were made")
            for name, one in zip(layer.output, results, strict=False):
                self.values[name] = self.scope.folder.settled(one)  # type: ignore[assignment]
