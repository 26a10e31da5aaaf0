"""From a TensorFlow graph to graph-level expressions.

Only what the outputs depend on is converted, on demand, with an explicit stack. Functions that nodes call (control flow
of version 2) have importers of their own; frames of loops and conditions of version 1 are recognised by ``frames`` and
``conditions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import TupleWrapper, Var, const
from tilewright.relay.frontend.common import ShapeNeeded, Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.tensorflow import ops as _converters
from tilewright.relay.frontend.tensorflow.attributes import array_of, attribute_value
from tilewright.relay.frontend.tensorflow.conditions import Conditions
from tilewright.relay.frontend.tensorflow.frames import Frames, convert_loop
from tilewright.relay.frontend.tensorflow.names import Reference, parsed
from tilewright.relay.frontend.tensorflow.registry import find_converter
from tilewright.relay.frontend.tensorflow.tensorflow_node import TensorFlowNode
from tilewright.support.errors import ModelError
from tilewright.support.wording import argument

assert _converters  # importing it registers the converters

PLACEHOLDERS: Final = ("Placeholder", "PlaceholderV2")
STRUCTURE: Final = frozenset(
    {"Const", "NoOp", "Assert", "Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit",
     "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "_Arg", "_Retval", *PLACEHOLDERS}
)  # fmt: skip
"""Operators that the importer itself takes care of."""


class GraphImporter:
    """Converts the nodes of a graph, or of a function of its library."""

    def __init__(self, nodes: Iterable[Any], library: Mapping[str, Any], scope: Scope) -> None:
        self.nodes: dict[str, Any] = {node.name: node for node in nodes}
        self.library = library
        self.scope = scope
        self.values: dict[str, list[Any]] = {}
        self.shapes: Mapping[str, Any] = {}
        self.inputs: list[Var] = []
        self.frames = Frames(self.nodes)
        self.conditions = Conditions()

    # Values

    def define(self, name: str, values: Sequence[Any]) -> None:
        """Give a node its outputs."""
        self.values[name] = list(values)

    def value(self, reference: str | Reference) -> Any:
        """The value of an output of a node, for which whatever it depends on is converted."""
        found = parsed(reference, self) if isinstance(reference, str) else reference
        self.require(found.node)
        values = self.values[found.node]
        if found.output >= len(values):
            raise ModelError(
                f"the node {found.node!r} has {len(values)} outputs, output {found.output} is read"
            )
        return values[found.output]

    def require(self, name: str) -> None:
        """Convert a node after everything that it depends on."""
        stack, waiting = [name], set()
        while stack:
            current = stack[-1]
            if current in self.values:
                stack.pop()
                continue
            node = self.nodes.get(current)
            if node is None:
                raise ModelError(f"the graph has no node {current!r}, which another one reads")
            missing = [one for one in self._dependencies(node) if one not in self.values]
            if not missing:
                self._convert(node)
                stack.pop()
                continue
            if current in waiting:
                raise ModelError(f"the node {current!r} depends on itself")
            waiting.add(current)
            stack += missing

    def _dependencies(self, node: Any) -> list[str]:
        """The nodes whose values a node reads. Those of a loop are read by the loop as a whole."""
        if node.op in ("Exit", "RefExit"):
            return self.frames.outside_of(node.name)
        if node.op in ("NoOp", "Assert"):
            return []
        # A constant inside a condition waits for a copy of the condition, which tells on which side it is.
        waits = [one[1:] for one in node.input if one.startswith("^")]
        sides = [
            one
            for one in waits
            if one in self.nodes and self.nodes[one].op in ("Identity", "Switch", "_SwitchN")
        ]
        return [parsed(one, self).node for one in node.input if not one.startswith("^")] + sides

    # Conversion

    def _convert(self, node: Any) -> None:
        if node.op in ("Exit", "RefExit"):
            wrapped = self.node(node)
            with wrapped.conversion():
                convert_loop(self, wrapped)
            return
        attributes = {name: attribute_value(value) for name, value in node.attr.items()}
        wrapped = TensorFlowNode(node, attributes, self)
        data = [] if node.op in ("NoOp", "Assert") else [one for one in node.input if not one.startswith("^")]
        references = [parsed(one, self) for one in data]
        inputs = [self.values[one.node][one.output] for one in references]
        with wrapped.conversion():
            if node.op in ("Switch", "RefSwitch", "_SwitchN"):
                self.values[node.name] = self.conditions.switched(wrapped, references, inputs)
                return
            self.conditions.inherit(node.name, references, node.input)
            if node.op in ("Merge", "RefMerge"):
                self.values[node.name] = self.conditions.merged(wrapped, references, inputs)
                return
            self.values[node.name] = [self._settled(one) for one in self._results(wrapped, inputs)]

    def node(self, proto: Any) -> TensorFlowNode:
        """A node as converters see it."""
        return TensorFlowNode(proto, {name: attribute_value(one) for name, one in proto.attr.items()}, self)

    def _results(self, node: TensorFlowNode, inputs: list[Any]) -> list[Any]:
        if node.op_type in PLACEHOLDERS:
            return [self._placeholder(node)]
        if node.op_type == "Const" and node.name in self.shapes and node.attr("dtype") == "string":
            return [self._placeholder(node)]
        if node.op_type == "Const":
            return [self.scope.stored(node.name, array_of(node.attr("value"), node.name))]
        if node.op_type in ("NoOp", "Assert"):
            # They have no value; as an output they are the number zero, as in TVM.
            return [const(0, "int32")]
        if node.op_type in ("_Retval", "LoopCond", "NextIteration", "RefNextIteration"):
            return [inputs[0]]
        convert = find_converter(node.op_type)
        if convert is None and node.op_type in self.library:
            return self.call(node.op_type, inputs)
        if convert is None:
            raise node.fail("the operator is not supported")
        made = convert(node, *inputs)
        return list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]

    def _settled(self, value: Any) -> Any:
        return self.scope.folder.settled(value) if isinstance(value, RelayExpr) else value

    def _placeholder(self, node: TensorFlowNode) -> Var:
        dtype = str(node.attr("dtype"))
        if dtype == "string" and node.name in self.shapes:
            # A file that the model decodes: the program's input is the image.
            dtype = "uint8"
        if dtype in ("string", "resource", "variant"):
            raise node.fail(
                f"the input is of the type {dtype}: strings have to be looked up, images decoded (give the shape of "
                "the decoded image), and variables frozen, before the model is read"
            )
        shape = self.shapes.get(node.name, node.attr("shape", None))
        if shape is None:
            known = node.attr("_output_shapes", None)
            shape = known[0] if known else None
        if shape is None:
            raise ShapeNeeded(
                f"the graph does not say how many dimensions its input {node.name!r} has: give {argument('shape')}"
            )
        variable = Var(node.name, input_type(node.name, [_extent(one) for one in shape], dtype))
        self.inputs.append(variable)
        return variable

    # Functions

    def without_values(self) -> GraphImporter:
        """An importer of the same nodes that has converted none of them."""
        return GraphImporter(self.nodes.values(), self.library, self.scope)

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """The results of a function of the library."""
        function = self.library.get(name)
        if function is None:
            raise ModelError(f"the graph's library has no function {name!r}")
        inner = GraphImporter(function.node_def, self.library, self.scope)
        names = [one.name for one in function.signature.input_arg]
        if len(names) != len(inputs):
            raise ModelError(f"the function {name!r} takes {len(names)} arguments, it is given {len(inputs)}")
        for one, value in zip(names, inputs, strict=True):
            inner.define(one, [value])
        return [inner.value(function.ret[one.name]) for one in function.signature.output_arg]


def _extent(extent: Any) -> int | None:
    if extent is None or not isinstance(extent, int):
        return None if extent is None or type(extent).__name__ == "Any" else int(extent)
    return None if extent < 0 else extent


def list_unsupported(graph: Any) -> list[Unsupported]:
    """The operators of a graph and of the functions of its library that cannot be converted."""
    library = {function.signature.name for function in graph.library.function}

    def missing(nodes: Iterable[Any]) -> Iterable[tuple[str, str]]:
        return (
            (node.op, node.name)
            for node in nodes
            if node.op not in STRUCTURE and node.op not in library and find_converter(node.op) is None
        )

    found = list(missing(graph.node))
    for function in graph.library.function:
        found += missing(function.node_def)
    return collect_unsupported(found)
