"""From a Caffe2 network to graph-level expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.caffe2 import ops as _converters
from tilewright.relay.frontend.caffe2.net import Net, OperatorEntry
from tilewright.relay.frontend.caffe2.node import Caffe2Node
from tilewright.relay.frontend.caffe2.registry import OPERATORS
from tilewright.relay.frontend.common import ShapeNeeded, Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument

assert _converters  # importing it registers the converters


def list_unsupported(net: Net) -> list[Unsupported]:
    """The operators of a network that cannot be converted."""
    return collect_unsupported(
        (one.kind, one.name) for one in net.operators if OPERATORS.find(one.kind) is None
    )


class NetImporter:
    """Converts a network whose inputs have these shapes and element types."""

    def __init__(
        self, net: Net, scope: Scope, shapes: Mapping[str, Any], dtypes: str | Mapping[str, str]
    ) -> None:
        self.net = net
        self.scope = scope
        self.inputs: list[Var] = []
        self.values: dict[str, Any] = {}
        for name in net.inputs:
            if name not in shapes:
                raise ShapeNeeded(
                    f"the input {name!r} is not among the weights, and its shape is not known: give "
                    f"{argument('shape')}"
                )
            kind = dtypes if isinstance(dtypes, str) else dtypes.get(name, "float32")
            self.inputs.append(Var(name, input_type(name, shapes[name], kind)))
            self.values[name] = self.inputs[-1]

    def convert(self) -> list[Expr]:
        """Convert the operators; the expressions of the outputs."""
        for entry in self.net.operators:
            self._operator(entry)
        for name in self.net.outputs:
            if name not in self.values:
                raise ModelError(f"the network's output {name!r} is not computed")
        return [self.values[name] for name in self.net.outputs]

    def _operator(self, entry: OperatorEntry) -> None:
        node = Caffe2Node(entry, self.scope)
        convert = OPERATORS.find(entry.kind)
        if convert is None:
            raise node.fail("the operator is not supported")
        with node.conversion():
            made = convert(node, *(self._tensor(name) for name in entry.inputs))
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            # Further outputs, such as the sizes of joined parts or a mask, are for training.
            for name, one in zip(entry.outputs, results, strict=False):
                self.values[name] = self.scope.folder.settled(one)

    def _tensor(self, name: str) -> Any:
        if name not in self.values:
            if name not in self.net.weights:
                raise ModelError(f"{name!r} is not computed before it is used")
            self.values[name] = self.scope.stored(name, self.net.weights[name])
        return self.values[name]
