"""Operators that are defined by a function: the model's own, and those of the ONNX standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

if TYPE_CHECKING:
    from tilewright.relay.frontend.onnx.importer import GraphImporter


MOST_NODES = 500_000
"""Nodes that a model may have when its functions are expanded: functions that call functions multiply."""


def check_functions(model: Any) -> None:
    """Refuse functions that call themselves, and those that would expand to more nodes than any network has. Each
    function is counted once, however often it is called."""
    functions = {(one.domain, one.name): one for one in model.functions}
    if not functions:
        return
    counted: dict[tuple[str, str], int] = {}
    open_calls: list[tuple[str, str]] = []

    def expanded(nodes: Any) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            total += size_of(key) if key in functions else 1
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    total += expanded(graph.node)
        return total

    def size_of(key: tuple[str, str]) -> int:
        if key in open_calls:
            cycle = [name for _, name in (*open_calls[open_calls.index(key) :], key)]
            raise ModelError(f"a function of the model calls itself: {' -> '.join(cycle)}")
        if key not in counted:
            open_calls.append(key)
            counted[key] = expanded(functions[key].node)
            open_calls.pop()
        return counted[key]

    with recursion_room():
        for key in functions:
            size_of(key)
        total = expanded(model.graph.node)
    if total > MOST_NODES:
        largest = max(counted, key=lambda key: counted[key])
        raise ModelError(
            f"the functions of the model expand to {total} nodes, and {MOST_NODES} are the most that are compiled; "
            f"{largest[1]!r} is the largest, with {counted[largest]}"
        )


def function_schema(domain: str, name: str, opset: int) -> Any | None:
    """The schema of a standard operator that has a function body, or None."""
    onnx = onnx_package()
    try:
        schema = onnx.defs.get_schema(
            name, max(min(opset, 1 << 20), 1), "" if domain == "ai.onnx" else domain
        )
    except onnx.defs.SchemaError:
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def expand_function(graph: GraphImporter, node: Node, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a node, from the body of the function that defines its operator."""
    proto = node.proto
    own = graph.functions.get((proto.domain, proto.op_type))
    body = own if own is not None else _standard_body(graph, node, inputs)
    if body is None:
        raise node.fail(f"the operator is not supported in opset {node.opset}")
    inner = graph.subgraph()
    inner.parent = None
    inner.params, inner.param_values, inner.partials = graph.params, graph.param_values, graph.partials
    for opset in body.opset_import:
        inner.opsets[opset.domain] = opset.version
    for position, name in enumerate(body.input):
        inner.values[name] = inputs[position] if position < len(inputs) else None
    for called in body.node:
        inner.convert_node(_with_attributes(called, node))
    return [inner.lookup(name) for name in body.output]


def _standard_body(graph: GraphImporter, node: Node, inputs: Sequence[Any]) -> Any | None:
    onnx = onnx_package()
    schema = function_schema(node.proto.domain, node.op_type, node.opset)
    if schema is None:
        return None
    if schema.has_function:
        return schema.function_body
    types = []
    for value in inputs:
        if value is None:
            types.append(onnx.TypeProto())
            continue
        kind = node.type_of(value)
        types.append(onnx.helper.make_tensor_type_proto(_element_type(str(kind.dtype)), node.shape(value)))
    encoded = schema.get_context_dependent_function(
        node.proto.SerializeToString(), [one.SerializeToString() for one in types]
    )
    body = onnx.FunctionProto()
    body.ParseFromString(encoded)
    return body


def _element_type(name: str) -> int:
    onnx = onnx_package()
    special = {"float32": "FLOAT", "float64": "DOUBLE"}
    return int(onnx.TensorProto.DataType.Value(special.get(name, name.upper())))


def _with_attributes(called: Any, node: Node) -> Any:
    """A node of a function body with the attributes that it takes from the function's caller."""
    references = [attribute for attribute in called.attribute if attribute.ref_attr_name]
    if not references:
        return called
    onnx = onnx_package()
    made = onnx.NodeProto()
    made.CopyFrom(called)
    del made.attribute[:]
    given = {attribute.name: attribute for attribute in node.proto.attribute}
    defaults = _defaults(node)
    for attribute in called.attribute:
        if not attribute.ref_attr_name:
            made.attribute.add().CopyFrom(attribute)
            continue
        source = given.get(attribute.ref_attr_name) or defaults.get(attribute.ref_attr_name)
        if source is not None:
            copy = made.attribute.add()
            copy.CopyFrom(source)
            copy.name = attribute.name
    return made


def _defaults(node: Node) -> dict[str, Any]:
    """The default values of a function's attributes."""
    own = node.graph.functions.get((node.proto.domain, node.op_type))
    if own is not None:
        return {attribute.name: attribute for attribute in own.attribute_proto}
    schema = function_schema(node.proto.domain, node.op_type, node.opset)
    if schema is None:
        return {}
    return {name: one.default_value for name, one in schema.attributes.items() if one.default_value.name}
