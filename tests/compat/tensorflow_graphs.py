"""Frozen graphs without TensorFlow: its messages as protobuf reads and writes them, under the names importers use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELDS = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "int64": _FIELDS.TYPE_INT64,
    "int32": _FIELDS.TYPE_INT32,
    "float": _FIELDS.TYPE_FLOAT,
    "bool": _FIELDS.TYPE_BOOL,
    "string": _FIELDS.TYPE_STRING,
    "bytes": _FIELDS.TYPE_BYTES,
}
_MESSAGES = {
    "Dim": "size 1 int64, name 2 string",
    "TensorShapeProto": "dim 2 Dim*, unknown_rank 3 bool",
    "TensorProto": "dtype 1 int32",
    "ListValue": "s 2 bytes*, i 3 int64*, f 4 float*, b 5 bool*, type 6 int32*, shape 7 TensorShapeProto*, "
    "tensor 8 TensorProto*, func 9 NameAttrList*",
    "NameAttrList": "name 1 string",
    "AttrValue": "list 1 ListValue|, s 2 bytes|, i 3 int64|, f 4 float|, b 5 bool|, type 6 int32|, "
    "shape 7 TensorShapeProto|, tensor 8 TensorProto|, placeholder 9 string|, func 10 NameAttrList|",
    "NodeDef": "name 1 string, op 2 string, input 3 string*, device 4 string, attr 5 AttrEntry*",
    "NodeDef.AttrEntry": "key 1 string, value 2 AttrValue",
    "OpDef": "name 1 string",
    "FunctionDef": "signature 1 OpDef, node_def 3 NodeDef*",
    "FunctionDefLibrary": "function 1 FunctionDef*",
    "GraphDef": "node 1 NodeDef*, library 2 FunctionDefLibrary",
}
"""The parts of TensorFlow's messages that small graphs need, with its numbers; ``*`` is repeated, ``|`` a choice."""

FLOAT = 1
"""The number of float32."""


def _graph_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="frozen_graph.proto", package="graphs", syntax="proto3")
    described: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():
        owner, _, entry = name.partition(".")
        made = described[owner].nested_type.add() if entry else file.message_type.add()
        made.name = entry or owner
        if entry:
            made.options.map_entry = True
        described[name] = made
        for field in fields.split(", "):
            field_name, number, kind = field.split()
            plain = kind.rstrip("*|")
            added = made.field.add(name=field_name, number=int(number))
            added.label = _FIELDS.LABEL_REPEATED if kind.endswith("*") else _FIELDS.LABEL_OPTIONAL
            added.type = _KINDS.get(plain, _FIELDS.TYPE_MESSAGE)
            if plain not in _KINDS:
                added.type_name = f".graphs.{'NodeDef.' if plain == 'AttrEntry' else ''}{plain}"
            if kind.endswith("|"):
                if not made.oneof_decl:
                    made.oneof_decl.add(name="value")
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("graphs.GraphDef"))


def stand_in() -> ModuleType:
    """What importers ask of the ``tensorflow`` package to read a frozen graph."""
    package, compat, first = ModuleType("tensorflow"), ModuleType("compat"), ModuleType("v1")
    first.GraphDef = _graph_class()  # type: ignore[attr-defined]
    compat.v1 = first  # type: ignore[attr-defined]
    package.compat = compat  # type: ignore[attr-defined]
    package.Graph = type("Graph", (), {})  # type: ignore[attr-defined]
    return package


@pytest.fixture
def tensorflow(monkeypatch: pytest.MonkeyPatch) -> Any:
    """TensorFlow, or what stands in for it where it is not installed."""
    try:
        import tensorflow as found
    except ImportError:
        found = stand_in()
        monkeypatch.setitem(sys.modules, "tensorflow", found)
    return found


def weighted_sum(tensorflow: Any, shape: Sequence[int] = (2, 3)) -> Any:
    """A graph of relu(x) * w + x, whose last node is "sum"."""
    graph = tensorflow.compat.v1.GraphDef()
    for name in ("x", "w"):
        node = graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = FLOAT
        for size in shape:
            node.attr["shape"].shape.dim.add(size=size)
    for name, op, inputs in (
        ("positive", "Relu", ["x"]),
        ("product", "Mul", ["positive", "w"]),
        ("sum", "AddV2", ["product", "x"]),
    ):
        node = graph.node.add(name=name, op=op)
        node.input.extend(inputs)
        node.attr["T"].type = FLOAT
    return graph
