"""ONNX as a format of models: its files, how they begin, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright.relay.frontend.common import Unsupported
from tilewright.relay.frontend.onnx.description import describe
from tilewright.relay.frontend.onnx.model import from_onnx
from tilewright.relay.frontend.onnx.reading import read_model
from tilewright.relay.frontend.onnx.unsupported import list_unsupported
from tilewright.relay.frontend.registry import Frontend, Imported

_IR_VERSION: Final = 0x08
"""The tag of the first field of a ModelProto: a number."""
_NEXT_FIELDS: Final = frozenset({0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72})
"""The tags that may follow it: producer name and version, domain, model version, documentation, graph, opsets,
metadata."""


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file; the options are those of ``relay.frontend.from_onnx``."""
    return from_onnx(path, shape=shape, **options)


def is_onnx(head: bytes) -> bool:
    """True if a file begins as protobuf writes models: the IR version, below 128, and a known field after it."""
    return len(head) > 2 and head[0] == _IR_VERSION and 0 < head[1] < 0x80 and head[2] in _NEXT_FIELDS


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The operators of a model that cannot be converted."""
    with read_model(path) as model:
        return list_unsupported(model.proto)


FRONTEND: Final = Frontend("onnx", ("onnx",), load, is_onnx, unsupported_in, describe)
