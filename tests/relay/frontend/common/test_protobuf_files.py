"""A message is read from whatever holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.relay.frontend.common.messages import encoded

from tilewright.relay.frontend.common.protobuf import Schema
from tilewright.relay.frontend.common.protobuf_files import read_message
from tilewright.support.errors import ModelError

SCHEMA = Schema({"Net": "name 1 string, layer 2 Layer*", "Layer": "name 1 string, size 2 int"})
VALUES = {"name": "a network of layers", "layer": [{"name": "the first of the layers", "size": 3}]}
TEXT = 'name: "a network of layers" layer { name: "the first of the layers" size: 3 }'


class Loaded:
    """A message that a framework has loaded."""

    def SerializeToString(self) -> bytes:
        return encoded(SCHEMA, "Net", VALUES)


@pytest.mark.parametrize("source", [TEXT, TEXT.encode(), bytearray(encoded(SCHEMA, "Net", VALUES)), Loaded()])
def test_text_bytes_and_loaded_messages(source: object) -> None:
    read = read_message(SCHEMA, "Net", source, "not a network")
    assert read.name == "a network of layers"
    assert [(one.name, one.size) for one in read.layer] == [("the first of the layers", 3)]


@pytest.mark.parametrize("content", [TEXT.encode(), encoded(SCHEMA, "Net", VALUES)])
def test_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net"
    path.write_bytes(content)
    for source in (path, str(path)):
        assert read_message(SCHEMA, "Net", source, "not a network").layer[0].size == 3


@pytest.mark.parametrize("source", [b"\x0a\xff", "name: {"])
def test_the_error_begins_with_the_complaint(source: object) -> None:
    with pytest.raises(ModelError, match="^the file is not a network: "):
        read_message(SCHEMA, "Net", source, "the file is not a network")
