"""A TFLite model as its file holds it: tensors, their values and quantisation, operators and their options."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.tflite.flatbuffer import Table
from tilewright.relay.frontend.tflite.schema import ACTIVATIONS, CUSTOM, OPERATORS, OPTIONS, TENSOR_TYPES
from tilewright.relay.frontend.tflite.sparsity import dense_values
from tilewright.support.errors import ModelError

IDENTIFIER: Final = b"TFL3"
"""At bytes 4 to 8 of a file."""
VERSION: Final = 3
"""The version of the schema that there is."""


@dataclass(frozen=True)
class Quantization:
    """What integers stand for: ``(integer - zero_point) * scale``, with numbers for all or for each place of an
    axis."""

    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    axis: int

    @property
    def per_channel(self) -> bool:
        """True if there are several scales."""
        return self.scale.size > 1

    def same(self, other: Quantization | None) -> bool:
        """True if integers stand for the same numbers."""
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )


@dataclass(frozen=True)
class Tensor:
    """A tensor: its declared type and, where the model holds it, its value."""

    index: int
    name: str
    shape: tuple[int, ...]
    """Sizes that are open in the model are 1."""
    signature: tuple[int | None, ...]
    """The shape with None for sizes that are open."""
    dtype: str
    quantization: Quantization | None
    value: np.ndarray[Any, Any] | None


@dataclass(frozen=True)
class Operator:
    """An operator: its name, its options, and the tensors that it reads and writes (-1 for an input left out)."""

    name: str
    position: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    custom_options: bytes = b""


@dataclass(frozen=True)
class Subgraph:
    """A graph: its tensors, and its operators in the order in which they run."""

    name: str
    tensors: list[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[Operator]


@dataclass(frozen=True)
class Model:
    """The graphs of a file; the first is the one that runs."""

    version: int
    description: str
    subgraphs: list[Subgraph]


def read_model(model: Any) -> Model:
    """A model from a path, from the bytes of a file, or from an object of the ``tflite`` package."""
    return _model(Table.root(_buffer(model)))


def _buffer(model: Any) -> memoryview:
    table = getattr(model, "_tab", None)
    if table is not None:
        content = bytes(table.Bytes)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        content = bytes(model)
    elif isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if not path.is_file():
            raise ModelError(f"there is no TFLite model {path}")
        content = path.read_bytes()
    else:
        raise ModelError(f"a TFLite model is a path, bytes, or a tflite.Model, not a {type(model).__name__}")
    if len(content) < 8:
        raise ModelError(f"not a TFLite model: it has only {len(content)} bytes")
    if content[4:8] != IDENTIFIER:
        raise ModelError(
            f"not a TFLite model: bytes 4 to 8 are {content[4:8]!r}, not {IDENTIFIER!r}. TensorFlow's converter "
            "(tf.lite.TFLiteConverter) writes TFLite models"
        )
    return memoryview(content)


def _model(root: Table) -> Model:
    version = root.number(0, "uint32", 0)
    if version != VERSION:
        raise ModelError(
            f"the TFLite model has version {version} of the schema; this one reads version {VERSION}"
        )
    codes = [_operator_name(code) for code in root.tables(1)]
    buffers = [table.vector(0, "uint8") for table in root.tables(4)]
    subgraphs = [_subgraph(table, codes, buffers) for table in root.tables(2)]
    if not subgraphs:
        raise ModelError("the TFLite model has no graph")
    return Model(version, root.text(3), subgraphs)


def _operator_name(code: Table) -> str:
    # Numbers above 127 are in a field of their own; old files have only the field of eight bits.
    number = max(code.number(0, "int8", 0), code.number(3, "int32", 0))
    if number == CUSTOM:
        return f"CUSTOM:{code.text(1)}"
    return OPERATORS[number] if 0 <= number < len(OPERATORS) else f"BUILTIN_{number}"


def _subgraph(table: Table, codes: list[str], buffers: list[Any]) -> Subgraph:
    tensors = [_tensor(place, one, buffers) for place, one in enumerate(table.tables(0))]
    count = len(tensors)
    return Subgraph(
        table.text(4),
        tensors,
        _places(table, 1, count),
        _places(table, 2, count),
        [_operator(place, one, codes, count) for place, one in enumerate(table.tables(3))],
    )


def _places(table: Table, number: int, count: int) -> tuple[int, ...]:
    found = table.vector(number, "int32")
    places = () if found is None else tuple(int(place) for place in found)
    if any(not -1 <= place < count for place in places):
        raise ModelError(f"the TFLite model is damaged: it refers to tensor {max(places)} of {count}")
    return places


def _operator(place: int, table: Table, codes: list[str], count: int) -> Operator:
    number = table.number(0, "uint32", 0)
    if number >= len(codes):
        raise ModelError(f"the TFLite model is damaged: operator {place} is of kind {number} of {len(codes)}")
    custom = table.vector(5, "uint8")
    return Operator(
        codes[number],
        place,
        _places(table, 1, count),
        _places(table, 2, count),
        _options(codes[number], table.table(4)),
        b"" if custom is None else custom.tobytes(),
    )


def _options(name: str, table: Table | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, option, kind, default in OPTIONS.get(name, ()):
        if kind == "act":
            code = 0 if table is None else table.number(number, "int8", 0)
            found[option] = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else f"activation {code}"
        elif kind == "pad":
            found[option] = "VALID" if table is not None and table.number(number, "int8", 0) else "SAME"
        elif kind == "mirror":
            found[option] = (
                "SYMMETRIC" if table is not None and table.number(number, "int8", 0) else "REFLECT"
            )
        elif kind == "type":
            found[option] = dtype_name(default if table is None else table.number(number, "int8", default))
        elif kind in ("int32s", "float32s"):
            values = None if table is None else table.vector(number, kind.removesuffix("s"))
            found[option] = None if values is None else values.tolist()
        elif kind == "text":
            found[option] = "" if table is None else table.text(number)
        else:
            found[option] = default if table is None else table.number(number, kind, default)
    return found


def dtype_name(number: int) -> str:
    """The name of an element type."""
    if not 0 <= number < len(TENSOR_TYPES):
        raise ModelError(f"the TFLite model has tensors of the unknown type {number}")
    return TENSOR_TYPES[number]


def _tensor(place: int, table: Table, buffers: list[Any]) -> Tensor:
    sizes, signature = table.vector(0, "int32"), table.vector(7, "int32")
    shape = () if sizes is None else tuple(max(int(size), 0) for size in sizes)
    declared: tuple[int | None, ...] = shape
    if signature is not None and len(signature) == len(shape):
        declared = tuple(None if open_ < 0 else size for size, open_ in zip(shape, signature, strict=True))
    dtype = dtype_name(table.number(1, "int8", 0))
    name = table.text(3) or f"tensor_{place}"
    number = table.number(2, "uint32", 0)
    if number >= len(buffers) and number:
        raise ModelError(f"the TFLite model is damaged: {name!r} is in buffer {number} of {len(buffers)}")
    stored = buffers[number] if number < len(buffers) else None
    value = None
    if stored is not None and len(stored):
        value = _value(name, stored, dtype, shape, table.table(6))
    elif number and 0 in shape and dtype not in ("string", "resource", "variant"):
        value = np.zeros(shape, _numpy_dtype(name, dtype))
    return Tensor(place, name, shape, declared, dtype, _quantization(table.table(4)), value)


def _numpy_dtype(name: str, dtype: str) -> np.dtype[Any]:
    if dtype in ("string", "resource", "variant", "bfloat16", "complex64", "complex128"):
        raise ModelError(f"the tensor {name!r} is of the type {dtype}, which is not supported")
    return np.dtype(dtype)


def _value(
    name: str, stored: np.ndarray[Any, Any], dtype: str, shape: tuple[int, ...], sparsity: Table | None
) -> np.ndarray[Any, Any] | None:
    if dtype == "string":
        return None
    if dtype == "int4":
        low, high = (stored.view("int8") << 4) >> 4, stored.view("int8") >> 4
        return np.stack([low, high], -1).reshape(-1)[: int(np.prod(shape))].reshape(shape)
    kind = _numpy_dtype(name, dtype)
    if len(stored) % kind.itemsize:
        raise ModelError(f"the TFLite model is damaged: {name!r} has {len(stored)} bytes of {dtype}")
    flat = stored.view(kind)
    if sparsity is not None:
        return dense_values(name, flat, shape, sparsity)
    if flat.size != int(np.prod(shape)):
        raise ModelError(
            f"the TFLite model is damaged: {name!r} has {flat.size} elements for the shape {list(shape)}"
        )
    return flat.reshape(shape)


def _quantization(table: Table | None) -> Quantization | None:
    if table is None:
        return None
    scale, zero = table.vector(2, "float32"), table.vector(3, "int64")
    if scale is None or not scale.size:
        return None
    points = np.zeros(scale.size, "int64") if zero is None or not zero.size else np.asarray(zero)
    if points.size != scale.size:
        points = np.broadcast_to(points, scale.shape)
    return Quantization(
        np.asarray(scale, "float32"), points.astype("int32"), int(table.number(6, "int32", 0))
    )
