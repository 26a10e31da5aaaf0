"""Protobuf messages made by hand: the encoding, from the same description of the fields that reads it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.relay.frontend.common.protobuf import Field, Schema


def encoded(schema: Schema, kind: str, values: Mapping[str, Any], packed: bool = True) -> bytes:
    """A message with these fields; a field that the description does not have is an error."""
    numbers = {field.name: number for number, field in schema.by_number[kind].items()}
    parts = []
    for name, value in values.items():
        field = schema.by_name[kind][name]
        number = numbers[name]
        if field.mapped:
            for key, one in value.items():
                inner = encoded(schema, field.kind, one, packed)
                entry = _delimited(1, key.encode()) + _delimited(2, inner)
                parts.append(_delimited(number, entry))
        elif not field.repeated:
            parts.append(_single(schema, field, number, value, packed))
        elif packed and not field.is_message and field.kind not in ("string", "bytes"):
            parts.append(_delimited(number, b"".join(_scalar(field, one)[1] for one in value)))
        else:
            parts += [_single(schema, field, number, one, packed) for one in value]
    return b"".join(parts)


def varint(number: int) -> bytes:
    """A number of variable length."""
    number &= (1 << 64) - 1
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def _single(schema: Schema, field: Field, number: int, value: Any, packed: bool) -> bytes:
    if field.is_message:
        return _delimited(number, encoded(schema, field.kind, value, packed))
    wire, content = _scalar(field, value)
    return _delimited(number, content) if wire == 2 else varint(number << 3 | wire) + content


def _scalar(field: Field, value: Any) -> tuple[int, bytes]:
    if field.names is not None:
        return 0, varint({name: number for number, name in field.names.items()}[value])
    if field.kind == "string":
        return 2, value.encode()
    if field.kind == "bytes":
        return 2, bytes(value)
    if field.kind == "float":
        return 5, struct.pack("<f", np.float32(value))
    if field.kind == "double":
        return 1, struct.pack("<d", value)
    return 0, varint(int(value))
