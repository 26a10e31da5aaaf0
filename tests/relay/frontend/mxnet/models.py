"""MXNet's files made by hand: symbols as JSON text, and files of parameters in each of their four forms."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay

Array = np.ndarray[Any, Any]
_FLAGS = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6, "bool": 7}
MAGIC = {1: 0xF993FAC8, 2: 0xF993FAC9, 3: 0xF993FACA}


class Symbol:
    """A symbol in the making. Nodes and variables are named by their numbers, results by pairs."""

    def __init__(self, key: str = "attrs") -> None:
        self.key = key
        self.nodes: list[dict[str, Any]] = []

    def variable(self, name: str, **attributes: Any) -> int:
        """An input or a parameter."""
        return self.node("null", name, **attributes)

    def node(self, operator: str, name: str, *inputs: int | tuple[int, int], **attributes: Any) -> int:
        """A node."""
        read = [[*one, 0] if isinstance(one, tuple) else [one, 0, 0] for one in inputs]
        made: dict[str, Any] = {"op": operator, "name": name, "inputs": read}
        if attributes:
            made[self.key] = {key: str(value) for key, value in attributes.items()}
        self.nodes.append(made)
        return len(self.nodes) - 1

    def text(self, *heads: int | tuple[int, int]) -> str:
        """The JSON text; the last node is the head unless others are named."""
        chosen = heads or (len(self.nodes) - 1,)
        listed = [[*one, 0] if isinstance(one, tuple) else [one, 0, 0] for one in chosen]
        return json.dumps(
            {"nodes": self.nodes, "heads": listed, "attrs": {"mxnet_version": ["int", 10901]}}, indent=2
        )


def array_bytes(value: Array, version: int = 2) -> bytes:
    """An array in a form: 0 to 3."""
    flag = struct.pack("<iii", 1, 0, _FLAGS[str(value.dtype)])
    if version == 0:
        head = struct.pack(f"<I{value.ndim}I", value.ndim, *value.shape)
    else:
        storage = struct.pack("<i", 0) if version > 1 else b""
        head = struct.pack("<I", MAGIC[version]) + storage
        head += struct.pack(f"<i{value.ndim}q", value.ndim, *value.shape)
    return head + flag + value.tobytes()


def parameters_file(values: Mapping[str, Array], version: int = 2) -> bytes:
    """A file of named arrays."""
    parts = [struct.pack("<QQQ", 0x112, 0, len(values))]
    parts += [array_bytes(value, version) for value in values.values()]
    parts.append(struct.pack("<Q", len(values)))
    parts += [struct.pack("<Q", len(name.encode())) + name.encode() for name in values]
    return b"".join(parts)


def run(symbol: Any, inputs: Mapping[str, Array], **options: Any) -> list[Array]:
    """What the reference interpreter computes for inputs by name."""
    module, params = relay.frontend.from_mxnet(
        symbol,
        {name: value.shape for name, value in inputs.items()},
        {name: str(value.dtype) for name, value in inputs.items()},
        **options,
    )
    return interpreted(module, params, inputs)


def single(operator: str, inputs: Mapping[str, Array], *, results: int = 1, **attributes: Any) -> list[Array]:
    """What one operator gives for inputs in their order."""
    symbol = Symbol()
    places = [symbol.variable(name) for name in inputs]
    made = symbol.node(operator, "made", *places, **attributes)
    return run(symbol.text(*((made, number) for number in range(results))), inputs)
