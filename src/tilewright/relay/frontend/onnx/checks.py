"""Checks of nodes against their operators' schemas, and of names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.support.errors import ModelError


@cache
def _schema(domain: str, operator: str, opset: int) -> Any | None:
    """The schema of an operator of the standard, or None."""
    onnx = onnx_package()
    try:
        return onnx.defs.get_schema(
            operator, max(min(opset, 1 << 20), 1), "" if domain == "ai.onnx" else domain
        )
    except onnx.defs.SchemaError:
        return None


def wrong_attribute(proto: Any, opset: int) -> str:
    """The error in the attributes of a node (one has the wrong type), or None."""
    schema = _schema(proto.domain, proto.op_type, opset)
    if schema is None:
        return ""
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        if known is not None and not attribute.ref_attr_name and attribute.type != int(known.type.value):
            return f"the attribute {attribute.name!r} has a type that the operator does not know"
    return ""


def missing_input(proto: Any, opset: int) -> str:
    """The error in the inputs of a node (a required one is missing), or None."""
    schema = _schema(proto.domain, proto.op_type, opset)
    if schema is None:
        return ""
    onnx = onnx_package()
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for place, formal in enumerate(schema.inputs):
        if formal.option == single and (place >= len(proto.input) or not proto.input[place]):
            return f"the input {formal.name!r} is missing"
    if len(proto.input) > schema.max_input:
        return f"{len(proto.input)} inputs are given, the operator has {schema.max_input}"
    return ""


def all_nodes(model: Any) -> Iterator[Any]:
    """Every node of a model: of its graph, of the graphs inside it, and of its functions."""
    pending = [model.graph.node, *(function.node for function in model.functions)]
    while pending:
        for node in pending.pop():
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    pending.append(attribute.g.node)
                pending += [graph.node for graph in attribute.graphs]


def check_text(model: Any) -> None:
    """Names of nodes, operators and values are text: protobuf gives what is not as bytes."""
    infos = (*model.graph.input, *model.graph.output, *model.graph.initializer)
    names = [info.name for info in infos]
    names += [one.domain for one in model.opset_import]
    names += [text for function in model.functions for text in (function.name, function.domain)]
    for node in all_nodes(model):
        names += (node.name, node.op_type, node.domain, *node.input, *node.output)
        names += (text for one in node.attribute for text in (one.name, one.ref_attr_name))
    if not all(isinstance(name, str) for name in names):
        raise ModelError("the model has names that are not text")
