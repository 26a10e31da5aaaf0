"""Protobuf messages from whatever a user has: a path, text, bytes, or a message that a framework has loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.common.protobuf import Message, Schema
from tilewright.relay.frontend.common.protobuf_text import read_text
from tilewright.support.errors import ModelError

_HEAD: Final = 512
"""Bytes by which text is told from the encoding."""


def read_message(schema: Schema, kind: str, source: Any, complaint: str) -> Message:
    """A message of a kind; the error for anything else begins with the complaint.

    A string is the text of a message if it has a brace in it, else a path.
    """
    if hasattr(source, "SerializeToString"):
        content: Any = source.SerializeToString()
    elif isinstance(source, Path) or (isinstance(source, str) and "{" not in source):
        content = Path(source).read_bytes()
    else:
        content = source
    try:
        if isinstance(content, str):
            return read_text(schema, kind, content)
        if _is_text(bytes(content[:_HEAD])):
            return read_text(schema, kind, bytes(content).decode(errors="replace"))
        return schema.read(kind, bytes(content))
    except ModelError as error:
        raise ModelError(f"{complaint}: {error}") from error


def _is_text(head: bytes) -> bool:
    """True if there are no control characters, which lengths and small numbers are in the encoding."""
    return all(byte >= 9 for byte in head) and any(mark in head for mark in (b"{", b":"))
