"""TensorFlow as formats of models: ``from_tensorflow``, frozen graphs, and SavedModels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import Unsupported, require_supported
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.relay.frontend.tensorflow.importer import PLACEHOLDERS, GraphImporter, list_unsupported
from tilewright.relay.frontend.tensorflow.reading import FrozenGraph, is_saved_model, read_graph
from tilewright.relay.transform import ConvertLayout
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

_LAYOUTS: Final = {
    "NCHW": {"nn.conv2d": ["NCHW", "default"], "nn.max_pool2d": ["NCHW"], "nn.avg_pool2d": ["NCHW"]}
}
"""What each layout that a caller may ask for means for operators."""


def from_tensorflow(
    graph: Any,
    layout: str | None = "NHWC",
    shape: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    convert_config: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a TensorFlow model: a frozen ``GraphDef`` or its file, a SavedModel's folder, or
    a concrete function.

    ``shape`` gives the shapes of inputs by name, and wins over what the graph says. With the shape of an image for the
    file that a model decodes ("DecodeJpeg/contents"), the decoded image, in uint8, is the input instead. ``outputs``
    names nodes, or outputs of nodes ("split:1"); without it, they are the model's own, or the last node. With
    ``layout="NCHW"`` convolutions and pooling are turned to that layout once, here; else the model keeps its layout and
    the compiler chooses. ``convert_config["signature"]`` picks a signature of a SavedModel. A model that cannot be
    converted raises one error that names all that is missing.
    """
    if layout not in (None, "NHWC", "NCHW"):
        raise ModelError(f"the layout is NHWC or NCHW, not {layout!r}")
    frozen = read_graph(graph, dict(convert_config or {}).get("signature"))
    require_supported(_needed_unsupported(frozen, outputs))
    module, params = converted(frozen, shape or {}, outputs)
    if layout == "NCHW":
        module = ConvertLayout(_LAYOUTS["NCHW"])(module)
    return module, params


def converted(
    frozen: FrozenGraph, shapes: Mapping[str, Any], outputs: Sequence[str] | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a frozen graph."""
    proto = frozen.graph
    library = {function.signature.name: function for function in proto.library.function}
    scope = Scope(IRModule())
    importer = GraphImporter(proto.node, library, scope)
    importer.shapes = shapes
    with recursion_room():
        # Inputs come in the model's order, whichever is used first.
        declared = frozen.inputs or [node.name for node in proto.node if node.op in PLACEHOLDERS]
        for name in declared:
            if name in importer.nodes and importer.nodes[name].op in PLACEHOLDERS:
                importer.require(name)
        wanted = list(outputs or frozen.outputs or [_last(proto)])
        values: list[Any] = []
        names: list[str] = []
        for place, reference in enumerate(wanted):
            found = [importer.value(reference)]
            if outputs is None and not frozen.outputs:
                found = importer.values[reference]
            values += found
            label = reference if outputs or not frozen.output_names else frozen.output_names[place]
            names += [label] if len(found) == 1 else [f"{label}:{one}" for one in range(len(found))]
        wrong = [name for name, value in zip(names, values, strict=True) if not isinstance(value, RelayExpr)]
        if wrong:
            raise ModelError(f"the outputs {', '.join(wrong)} are not tensors")
        inputs: list[Var] = importer.inputs
        return finished(scope.module, inputs, values, names, scope.params)


def _last(proto: Any) -> str:
    """The last node with a value, which is the output of a graph that does not say."""
    for node in reversed(proto.node):
        if node.op != "NoOp":
            return str(node.name)
    return str(proto.node[-1].name)


def _needed_unsupported(frozen: FrozenGraph, outputs: Sequence[str] | None) -> list[Unsupported]:
    """The operators on which the outputs depend that cannot be converted."""
    found = list_unsupported(frozen.graph)
    if not found:
        return []
    nodes = {node.name: node for node in frozen.graph.node}
    pending = [one.split(":")[0] for one in outputs or frozen.outputs or [_last(frozen.graph)]]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in reached and name in nodes:
            reached.add(name)
            pending += [one.split(":")[0] for one in nodes[name].input if not one.startswith("^")]
    inner = {node.name for function in frozen.graph.library.function for node in function.node_def}
    kept = []
    for one in found:
        users = [name for name in one.nodes if name in reached or (name in inner and name not in nodes)]
        if users:
            kept.append(Unsupported(one.operator, nodes=users))
    return kept


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file or folder; the options are those of ``relay.frontend.from_tensorflow``."""
    return from_tensorflow(path, shape=shape, **options)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    return _needed_unsupported(read_graph(path), None)


def is_graph(head: bytes) -> bool:
    """True if a file begins as protobuf writes graphs (a node, and in it its name) or SavedModels (version 1)."""
    return (head[:1] == b"\x0a" and b"\x12" in head[2:] and _names_a_node(head)) or head[
        :3
    ] == b"\x08\x01\x12"


def _names_a_node(head: bytes) -> bool:
    place = 2 if head[1] < 0x80 else 3
    if len(head) < place + 2 or head[place] != 0x0A:
        return False
    length = head[place + 1]
    name = head[place + 2 : place + 2 + length]
    return len(name) == length and name.isascii() and name.decode().isprintable()


FRONTEND: Final = Frontend("pb", ("pb",), load, is_graph, unsupported_in)
SAVED_MODEL: Final = Frontend(
    "saved_model", (), load, list_unsupported=unsupported_in, is_folder=is_saved_model
)
FRONTENDS: Final = (FRONTEND, SAVED_MODEL)
