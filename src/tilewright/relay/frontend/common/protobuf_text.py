"""Protobuf's text form (``.prototxt``, ``.pbtxt``), read by the same description of fields as the encoding."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from tilewright.relay.frontend.common.protobuf import Field, Message, Schema
from tilewright.support.errors import ModelError

_TOKENS: Final = re.compile(
    r"""\s*(?:\#[^\n]*\n?\s*)*"""
    r"""([A-Za-z_][\w.]*|[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)|-inf|"""
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}<>:;,\[\]])""",
    re.DOTALL,
)
_NUMBERS: Final = ("float", "double")


def read_text(schema: Schema, kind: str, text: str) -> Message:
    """A message from its text. Fields that the description does not have are skipped."""
    reader = _Reader(schema, text)
    made = Message(schema, kind)
    stack: list[tuple[Message | None, str]] = [(made, "")]
    # Messages inside others are kept on a stack; those that are skipped are None.
    while reader.more():
        token = reader.take()
        message, close = stack[-1]
        if token == close and close:
            stack.pop()
        elif token in (";", ","):
            continue
        elif not (token[0].isalpha() or token[0] == "_"):
            raise reader.fail(f"the name of a field is expected, not {token!r}")
        else:
            field = None if message is None else schema.by_name[message.kind].get(token)
            if reader.peek() == ":":
                reader.take()
            opened = reader.peek()
            if opened in ("{", "<"):
                reader.take()
                inner = None
                if message is not None and field is not None and field.is_message:
                    inner = _inner(schema, message, field)
                stack.append((inner, "}" if opened == "{" else ">"))
            else:
                values = reader.values()
                if message is not None and field is not None:
                    _keep(reader, message, field, values)
        if len(stack) > 100:
            raise reader.fail("messages are more than 100 levels deep")
    if len(stack) > 1:
        raise reader.fail(f"the text ends where {stack[-1][1]!r} is expected")
    return made


def _inner(schema: Schema, message: Message, field: Field) -> Message:
    if not field.repeated and field.name in message.given:
        held: Message = message.given[field.name]
        return held
    made = Message(schema, field.kind)
    if field.repeated:
        message.given.setdefault(field.name, []).append(made)
    else:
        message.given[field.name] = made
    return made


def _keep(reader: _Reader, message: Message, field: Field, tokens: list[str]) -> None:
    values = [_value(reader, field, token) for token in tokens]
    if not field.repeated:
        message.given[field.name] = values[-1]
    elif field.kind in _NUMBERS:
        before = message.given.get(field.name, np.zeros(0))
        message.given[field.name] = np.concatenate([before, np.asarray(values)]).astype("float64")
    else:
        message.given.setdefault(field.name, []).extend(values)


def _value(reader: _Reader, field: Field, token: str) -> Any:
    if field.is_message:
        raise reader.fail(f"the field {field.name} is a message, not {token!r}")
    if field.kind in ("string", "bytes"):
        if token[0] not in "\"'":
            raise reader.fail(f"the field {field.name} is a text, not {token!r}")
        content = _unquoted(token)
        return content if field.kind == "bytes" else content.decode(errors="replace")
    if field.names is not None:
        if token.lstrip("-").isdigit():
            return field.names.get(int(token), token)
        if token not in field.names.values():
            raise reader.fail(f"the field {field.name} cannot be {token}")
        return token
    if field.kind == "bool":
        if token.lower() not in ("true", "false", "t", "f", "0", "1"):
            raise reader.fail(f"the field {field.name} is neither true nor false, but {token}")
        return token.lower() in ("true", "t", "1")
    try:
        return (
            float(token.rstrip("f")) if field.kind in _NUMBERS and token != "inf" else _number(field, token)
        )
    except ValueError:
        raise reader.fail(f"the field {field.name} is a number, not {token!r}") from None


def _number(field: Field, token: str) -> Any:
    return float(token) if field.kind in _NUMBERS else int(token, 0)


def _unquoted(token: str) -> bytes:
    """What a quoted text stands for."""
    return re.sub(
        rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)",
        lambda found: _escaped(found.group(1)),
        token[1:-1].encode(),
        flags=re.DOTALL,
    )


def _escaped(code: bytes) -> bytes:
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit():
        return bytes([int(code, 8) & 0xFF])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(code, code)


class _Reader:
    """Takes tokens from a text."""

    def __init__(self, schema: Schema, text: str) -> None:
        self.text = text
        self.at = 0
        self._next: str | None = None
        self._after = 0

    def peek(self) -> str:
        """The next token; empty at the end."""
        if self._next is None:
            found = _TOKENS.match(self.text, self.at)
            if found is None:
                rest = re.sub(r"#[^\n]*", "", self.text[self.at :]).strip()
                if rest:
                    raise self.fail(f"{rest[:20]!r} is not understood")
                self._next, self._after = "", len(self.text)
            else:
                self._next, self._after = found.group(1), found.end()
        return self._next

    def more(self) -> bool:
        """True before the end."""
        return self.peek() != ""

    def take(self) -> str:
        """The next token, which is used up."""
        found = self.peek()
        self.at, self._next = self._after, None
        return found

    def values(self) -> list[str]:
        """A value or a list of values; texts beside each other are one."""
        if self.peek() == "[":
            self.take()
            found: list[str] = []
            while self.peek() not in ("]", ""):
                token = self.take()
                if token != ",":
                    found.append(token)
            self.take()
            return found
        value = self.take()
        if value in ("", "{", "}", "<", ">", ":", ";", ","):
            raise self.fail(f"a value is expected, not {value!r}")
        while value[0] in "\"'" and self.peek()[:1] in ('"', "'"):
            value = value[:-1] + self.take()[1:-1] + value[0]
        return [value]

    def fail(self, reason: str) -> ModelError:
        """An error at this line."""
        return ModelError(f"line {self.text.count(chr(10), 0, self.at) + 1}: {reason}")
