"""Reading protobuf messages without protobuf's package: the formats of several frameworks are little else.

A :class:`Schema` names the fields that a frontend reads; all others are skipped. Each message is described by a line:

    Schema({"Layer": "name 1 string, bottom 3 string*, blobs 7 Blob*, pool 8 MAX|AVE, axis 9 int 1"})

A field has a name, a number, a kind and perhaps a default. Kinds are ``int`` (of any width, signed), ``uint``,
``bool``, ``float``, ``double``, ``string``, ``bytes``, another message, names of an enumeration separated by ``|``
(numbered from zero, or ``NAME=NUMBER``), followed by ``*`` where the field is repeated, or by ``%`` where it is a map
from strings.
Enumerations are read as their names. Every length is checked; a damaged message is a ``ModelError``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.support.errors import ModelError

DEEPEST: Final = 100
"""Levels of messages inside each other; protobuf's own limit."""
_SCALARS: Final[dict[str, Any]] = {
    "int": 0,
    "uint": 0,
    "bool": False,
    "float": 0.0,
    "double": 0.0,
    "string": "",
    "bytes": b"",
}
_FIXED: Final = {"float": "<f4", "double": "<f8"}
_WIDTHS: Final = {1: 8, 5: 4}
"""Bytes of the kinds of fields of fixed width, by their number in the encoding."""


@dataclass(frozen=True)
class Field:
    """A field of a message."""

    name: str
    kind: str
    repeated: bool
    mapped: bool
    default: Any
    names: Mapping[int, str] | None
    """The names of an enumeration by number; None for other kinds."""

    @property
    def is_message(self) -> bool:
        """True if the values are messages."""
        return self.names is None and self.kind not in _SCALARS


class Message:
    """A message that was read. Fields are attributes; one that was not given has its default, a message without fields
    where it is a message."""

    __slots__ = ("given", "kind", "schema")

    def __init__(self, schema: Schema, kind: str) -> None:
        self.schema = schema
        self.kind = kind
        self.given: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        field = self.schema.by_name[self.kind].get(name)
        if field is None:
            raise AttributeError(f"{self.kind} has no field {name!r}")
        if field.repeated:
            return np.zeros(0, _FIXED[field.kind]) if field.kind in _FIXED else []
        if field.mapped:
            return {}
        return Message(self.schema, field.kind) if field.is_message else field.default

    def has(self, name: str) -> bool:
        """True if the field was given."""
        return name in self.given

    def which(self, *names: str) -> str:
        """The first of some fields that was given, "" if none was."""
        return next((name for name in names if name in self.given), "")


class Schema:
    """The messages of a format."""

    def __init__(self, described: Mapping[str, str]) -> None:
        self.by_number: dict[str, dict[int, Field]] = {}
        self.by_name: dict[str, dict[str, Field]] = {}
        for kind, text in described.items():
            fields = [_field(part.split()) for part in text.split(",") if part.strip()]
            self.by_number[kind] = dict(fields)
            self.by_name[kind] = {field.name: field for _, field in fields}
        for kind, named in self.by_name.items():
            for field in named.values():
                if field.is_message and field.kind not in self.by_name:
                    raise ValueError(f"{kind}.{field.name} is a {field.kind}, which is not described")

    def read(self, kind: str, content: bytes | memoryview) -> Message:
        """A message from its encoding."""
        message = Message(self, kind)
        self._read_into(message, memoryview(content), 0)
        return message

    def _read_into(self, message: Message, content: memoryview, depth: int) -> None:
        if depth > DEEPEST:
            raise ModelError(f"the encoding is damaged: messages are more than {DEEPEST} levels deep")
        fields, given = self.by_number[message.kind], message.given
        at, end = 0, len(content)
        while at < end:
            tag, at = _number(content, at)
            wire, field = tag & 7, fields.get(tag >> 3)
            if wire == 0:
                payload: Any
                payload, at = _number(content, at)
            else:
                if wire == 2:
                    length, at = _number(content, at)
                elif wire in _WIDTHS:
                    length = _WIDTHS[wire]
                else:
                    raise ModelError(
                        f"the encoding of a {message.kind} is damaged: there is no field kind {wire}"
                    )
                if at + length > end or not tag >> 3:
                    raise ModelError(
                        f"the encoding of a {message.kind} is damaged: a field exceeds its container"
                    )
                payload = content[at : at + length]
                at += length
            if field is not None:
                self._take(message, field, wire, payload, depth)
        for name, value in given.items():
            if isinstance(value, list) and fields and self.by_name[message.kind][name].kind in _FIXED:
                given[name] = np.concatenate(value)

    def _take(self, message: Message, field: Field, wire: int, payload: Any, depth: int) -> None:
        """Add one field that was met to a message."""
        given = message.given
        if field.mapped:
            entry = Message(_MAP_ENTRY, "Entry")
            _MAP_ENTRY._read_into(entry, _bytes(message, field, wire, payload), depth + 1)
            value = Message(self, field.kind)
            self._read_into(value, memoryview(entry.value), depth + 2)
            given.setdefault(field.name, {})[entry.key] = value
        elif field.is_message:
            content = _bytes(message, field, wire, payload)
            made = None if field.repeated else given.get(field.name)
            if made is None:
                made = Message(self, field.kind)
                if field.repeated:
                    given.setdefault(field.name, []).append(made)
                else:
                    given[field.name] = made
            self._read_into(made, content, depth + 1)
        elif field.repeated:
            held = given.setdefault(field.name, [])
            if isinstance(held, np.ndarray):
                held = given[field.name] = [held]
            held += _scalars(message, field, wire, payload)
        else:
            found = _scalars(message, field, wire, payload)
            if not found or (field.kind in _FIXED and len(found[-1]) == 0):
                return
            given[field.name] = float(found[-1][-1]) if field.kind in _FIXED else found[-1]


def _field(words: list[str]) -> tuple[int, Field]:
    name, number, kind, *default = words
    repeated, mapped = kind.endswith("*"), kind.endswith("%")
    kind = kind.rstrip("*%")
    if "|" not in kind:
        start: Any = _SCALARS.get(kind)
        if default:
            start = type(start)(default[0] == "true" if kind == "bool" else default[0])
        return int(number), Field(name, kind, repeated, mapped, start, None)
    names: dict[int, str] = {}
    for place, one in enumerate(kind.split("|")):
        label, _, value = one.partition("=")
        names[int(value) if value else place] = label
    first = default[0] if default else next(iter(names.values()))
    return int(number), Field(name, "enum", repeated, mapped, first, names)


def _bytes(message: Message, field: Field, wire: int, payload: Any) -> memoryview:
    if wire != 2:
        raise ModelError(
            f"the encoding of a {message.kind} is damaged: {field.name} has the field kind {wire}"
        )
    return memoryview(payload)


def _scalars(message: Message, field: Field, wire: int, payload: Any) -> list[Any]:
    """The values in one occurrence of a field: several where they are packed. Numbers of fixed width are arrays."""
    kind = field.kind
    if kind in ("string", "bytes"):
        content = bytes(_bytes(message, field, wire, payload))
        if kind == "bytes":
            return [content]
        try:
            return [content.decode()]
        except UnicodeDecodeError:
            raise ModelError(
                f"the encoding of a {message.kind} is damaged: {field.name} is not text"
            ) from None
    if kind in _FIXED:
        width = int(_FIXED[kind][-1])
        if wire == 0 or len(payload) % width:
            raise ModelError(
                f"the encoding of a {message.kind} is damaged: {field.name} has the wrong length"
            )
        return [np.frombuffer(payload, _FIXED[kind])]
    if wire == 0:
        numbers = [payload]
    elif wire == 2:
        numbers, at = [], 0
        while at < len(payload):
            number, at = _number(payload, at)
            numbers.append(number)
    else:
        numbers = [struct.unpack("<Q" if wire == 1 else "<I", payload)[0]]
    if field.names is not None:
        return [field.names.get(number, str(number)) for number in numbers]
    if kind == "bool":
        return [bool(number) for number in numbers]
    return numbers if kind == "uint" else [(number ^ 1 << 63) - (1 << 63) for number in numbers]


def _number(content: memoryview, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    try:
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise ModelError("the encoding is damaged: a number does not end")
    except IndexError:
        raise ModelError("the encoding is damaged: it ends within a number") from None


_MAP_ENTRY: Final = Schema({"Entry": "key 1 string, value 2 bytes"})
