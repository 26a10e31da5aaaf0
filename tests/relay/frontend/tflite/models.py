"""TFLite files made by hand: a small writer of flatbuffers, and models out of operators and tensors."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.relay.frontend.tflite.schema import ACTIVATIONS, OPERATORS, OPTIONS, TENSOR_TYPES

_FORMATS = {
    "bool": "<?",
    "int8": "<b",
    "uint8": "<B",
    "int32": "<i",
    "uint32": "<I",
    "float32": "<f",
    "int64": "<q",
}


@dataclass
class Number:
    """A number of a type."""

    kind: str
    value: Any


Fields = dict[int, Any]
"""A table: numbers, texts, arrays, tables and lists of tables by the numbers of fields."""


def flatbuffer(root: Fields) -> bytes:
    """A file whose root is a table."""
    content = bytearray(b"\0\0\0\0TFL3")
    _offset(content, 0, _table(content, root))
    return bytes(content)


def _offset(content: bytearray, at: int, target: int) -> None:
    struct.pack_into("<I", content, at, target - at)


def _align(content: bytearray, size: int) -> None:
    content.extend(b"\0" * (-len(content) % size))


def _table(content: bytearray, fields: Fields) -> int:
    """Write a table and what is in it; where it is. Every field has eight bytes."""
    _align(content, 8)
    count = max(fields, default=-1) + 1
    entries = len(content)
    content.extend(struct.pack("<HH", 4 + 2 * count, 8 + 8 * count) + b"\0\0" * count)
    _align(content, 8)
    begin = len(content)
    content.extend(struct.pack("<i", begin - entries) + b"\0" * (4 + 8 * count))
    places = {}
    for place, number in enumerate(sorted(fields)):
        places[number] = begin + 8 + 8 * place
        struct.pack_into("<H", content, entries + 4 + 2 * number, 8 + 8 * place)
    for number, value in fields.items():
        at = places[number]
        if isinstance(value, Number):
            struct.pack_into(_FORMATS[value.kind], content, at, value.value)
        elif isinstance(value, dict):
            _offset(content, at, _table(content, value))
        elif isinstance(value, list):
            _offset(content, at, _tables(content, value))
        else:
            data = value.encode() if isinstance(value, str) else value
            array = np.frombuffer(data, "uint8") if isinstance(data, bytes) else np.asarray(data)
            _align(content, 16)
            content.extend(b"\0" * 12)
            _offset(content, at, len(content))
            content.extend(struct.pack("<I", len(array)) + array.tobytes())
    return begin


def _tables(content: bytearray, tables: list[Fields]) -> int:
    _align(content, 4)
    begin = len(content)
    content.extend(struct.pack("<I", len(tables)) + b"\0\0\0\0" * len(tables))
    for place, table in enumerate(tables):
        at = begin + 4 + 4 * place
        _offset(content, at, _table(content, table))
    return begin


# Models


@dataclass
class T:
    """A tensor; with a value it is a constant, with a scale its integers stand for other numbers."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    value: Any = None
    scale: Any = None
    zero: Any = 0
    axis: int = 0
    more: Fields = field(default_factory=dict)


@dataclass
class Op:
    """An operator: names of tensors that it reads (None for one left out) and writes, and its options."""

    name: str
    inputs: list[str | None]
    outputs: list[str]
    options: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""


@dataclass
class Graph:
    """A graph of a model."""

    tensors: list[T]
    operators: list[Op]
    inputs: list[str]
    outputs: list[str]


def held(name: str, value: Any, **more: Any) -> T:
    """A constant."""
    array = np.asarray(value)
    return T(name, array.shape, str(array.dtype), array, **more)


def model(*graphs: Graph, version: int = 3) -> bytes:
    """A file with these graphs."""
    codes: list[str] = sorted({op.name for graph in graphs for op in graph.operators})
    buffers: list[Fields] = [{}]
    tables = [_graph(graph, codes, buffers) for graph in graphs]
    return flatbuffer(
        {
            0: Number("uint32", version),
            1: [_code(name) for name in codes],
            2: tables,
            3: "made by hand",
            4: buffers,
        }
    )


def _code(name: str) -> Fields:
    if name.startswith("CUSTOM:"):
        return {0: Number("int8", 32), 1: name.partition(":")[2], 3: Number("int32", 32)}
    number = OPERATORS.index(name)
    return {0: Number("int8", min(number, 127)), 3: Number("int32", number)}


def _graph(graph: Graph, codes: list[str], buffers: list[Fields]) -> Fields:
    places = {tensor.name: place for place, tensor in enumerate(graph.tensors)}

    def numbers(names: list[Any]) -> np.ndarray[Any, Any]:
        return np.asarray([-1 if name is None else places[name] for name in names], "int32")

    tensors = []
    for tensor in graph.tensors:
        buffer = 0
        if tensor.value is not None:
            buffer = len(buffers)
            buffers.append({0: np.ascontiguousarray(tensor.value).tobytes()})
        fields: Fields = {
            0: np.asarray(tensor.shape, "int32"),
            1: Number("int8", TENSOR_TYPES.index(tensor.dtype)),
            2: Number("uint32", buffer),
            3: tensor.name,
            **tensor.more,
        }
        if tensor.scale is not None:
            scale = np.atleast_1d(np.asarray(tensor.scale, "float32"))
            zero = np.broadcast_to(np.asarray(tensor.zero, "int64"), scale.shape).copy()
            fields[4] = {2: scale, 3: zero, 6: Number("int32", tensor.axis)}
        tensors.append(fields)
    operators = []
    for op in graph.operators:
        fields = {0: Number("uint32", codes.index(op.name)), 1: numbers(op.inputs), 2: numbers(op.outputs)}
        if op.options:
            fields[4] = _options(op)
        if op.custom:
            fields[5] = op.custom
        operators.append(fields)
    return {0: tensors, 1: numbers(graph.inputs), 2: numbers(graph.outputs), 3: operators, 4: "graph"}


def _options(op: Op) -> Fields:
    found: Fields = {}
    for number, name, kind, _ in OPTIONS[op.name]:
        if name not in op.options:
            continue
        value = op.options[name]
        if kind == "act":
            found[number] = Number("int8", ACTIVATIONS.index(value))
        elif kind == "pad":
            found[number] = Number("int8", int(value == "VALID"))
        elif kind == "type":
            found[number] = Number("int8", TENSOR_TYPES.index(value))
        elif kind in ("int32s", "float32s"):
            found[number] = np.asarray(value, kind.removesuffix("s"))
        else:
            found[number] = Number(kind, value)
    return found


def run(content: Any, *inputs: Any, **options: Any) -> list[np.ndarray[Any, Any]]:
    """What the reference interpreter computes."""
    module, params = relay.frontend.from_tflite(content, **options)
    return interpreted(module, params, inputs)
