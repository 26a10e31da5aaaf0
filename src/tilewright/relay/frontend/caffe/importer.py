"""From a Caffe network to graph-level expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.caffe import ops as _converters
from tilewright.relay.frontend.caffe.net import LayerEntry, Net
from tilewright.relay.frontend.caffe.node import CaffeNode
from tilewright.relay.frontend.caffe.registry import LAYERS
from tilewright.relay.frontend.common import ShapeNeeded, Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.support.wording import argument

assert _converters  # importing it registers the converters


def list_unsupported(net: Net) -> list[Unsupported]:
    """The layers of a network that cannot be converted."""
    return collect_unsupported((one.kind, one.name) for one in net.layers if LAYERS.find(one.kind) is None)


class NetImporter:
    """Converts a network whose inputs have these shapes and element types."""

    def __init__(self, net: Net, scope: Scope, shapes: Mapping[str, Any], dtypes: Mapping[str, str]) -> None:
        self.net = net
        self.scope = scope
        self.inputs: list[Var] = []
        self.values: dict[str, Any] = {}
        read = {name for layer in net.layers for name in layer.bottoms}
        for name, declared in net.inputs.items():
            if name not in read and name not in shapes:
                continue
            shape = shapes.get(name, declared)
            if shape is None:
                # Labels that only losses read are no inputs of a network that is used.
                continue
            self.inputs.append(Var(name, input_type(name, shape, dtypes.get(name, "float32"))))
            self.values[name] = self.inputs[-1]

    def convert(self) -> list[Expr]:
        """Convert the layers; the expressions of the outputs."""
        for entry in self.net.layers:
            self._layer(entry)
        return [self.values[name] for name in self.net.outputs]

    def _layer(self, entry: LayerEntry) -> None:
        node = CaffeNode(entry, self.scope, self.net.weights.get(entry.name, []))
        convert = LAYERS.find(entry.kind)
        if convert is None:
            raise node.fail("the layer is not supported")
        with node.conversion():
            bottoms = entry.bottoms[:1] if entry.kind == "SoftmaxWithLoss" else entry.bottoms
            for name in bottoms:
                if name not in self.values and name in self.net.inputs:
                    raise ShapeNeeded(
                        f"the shape of the input {name!r} is not known: give {argument('shape')}"
                    )
                if name not in self.values:
                    raise node.fail(f"the input {name!r} is not computed by a layer before it")
            made = convert(node, *(self.values[name] for name in bottoms))
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            if len(results) < len(entry.tops):
                raise node.fail(f"the layer has {len(entry.tops)} outputs and {len(results)} were made")
            for name, one in zip(entry.tops, results, strict=False):
                self.values[name] = self.scope.folder.settled(one)
