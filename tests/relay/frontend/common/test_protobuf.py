"""Protobuf messages are read as protobuf reads them, and damaged ones are refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.relay.frontend.common.messages import encoded

from tilewright.relay.frontend.common.protobuf import Schema
from tilewright.support.errors import ModelError

SCHEMA = Schema(
    {
        "Layer": (
            "name 1 string, sizes 2 int*, scale 3 float 1.5, values 4 float*, inner 5 Layer, more 6 Layer*, "
            "mode 7 MAX|AVE=4|SUM, flag 8 bool true, raw 9 bytes, named 10 Layer%, wide 11 double, count 300 uint"
        )
    }
)


@pytest.mark.parametrize("packed", [True, False])
def test_fields_are_read_back(packed: bool) -> None:
    """Every kind of field, repeated ones packed or one by one."""
    content = {
        "name": "conv",
        "sizes": [3, -1, 1 << 40],
        "values": [1.0, -2.5],
        "inner": {"name": "a", "mode": "AVE"},
        "more": [{"name": "b"}, {"sizes": [7]}],
        "raw": b"\x00\xff",
        "named": {"key": {"wide": 0.1}},
        "count": 1 << 63,
    }
    read = SCHEMA.read("Layer", encoded(SCHEMA, "Layer", content, packed))
    assert (read.name, read.sizes, read.raw, read.count) == ("conv", [3, -1, 1 << 40], b"\x00\xff", 1 << 63)
    np.testing.assert_array_equal(read.values, np.float32([1, -2.5]))
    assert (read.inner.name, read.inner.mode) == ("a", "AVE")
    assert [one.name for one in read.more] == ["b", ""] and read.more[1].sizes == [7]
    assert read.named["key"].wide == 0.1
    assert read.which("inner", "more") == "inner" and not read.has("flag")


def test_absent_fields_have_their_defaults() -> None:
    """Numbers, names of enumerations, lists and messages that were not given."""
    read = SCHEMA.read("Layer", b"")
    assert (read.name, read.scale, read.mode, read.flag, read.sizes) == ("", 1.5, "MAX", True, [])
    assert read.inner.inner.name == "" and read.values.shape == (0,)
    with pytest.raises(AttributeError, match="no field 'nothing'"):
        _ = read.nothing


def test_a_message_given_twice_is_merged() -> None:
    """As protobuf does it: the last number counts, lists are joined."""
    first = encoded(SCHEMA, "Layer", {"inner": {"name": "a", "values": [1.0], "sizes": [1]}})
    second = encoded(SCHEMA, "Layer", {"inner": {"name": "b", "values": [2.0]}})
    inner = SCHEMA.read("Layer", first + second).inner
    assert inner.name == "b" and inner.sizes == [1]
    np.testing.assert_array_equal(inner.values, np.float32([1, 2]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x0a\x05ab", "exceeds its container"),
        (b"\x0a", "ends within a number"),
        (b"\x0b", "no field kind 3"),
        (b"\x10" + b"\xff" * 11, "does not end"),
        (b"\x0a\x01\xff", "is not text"),
        (b"\x22\x03abc", "wrong length"),
        (b"\x28\x01", "has the field kind 0"),
    ],
)
def test_damage_is_named(content: bytes, message: str) -> None:
    """Each kind of damage is an error about the model."""
    with pytest.raises(ModelError, match=message):
        SCHEMA.read("Layer", content)


def test_messages_too_deep_are_refused() -> None:
    """A file of nested messages does not exhaust the stack."""
    content = b""
    for _ in range(200):
        content = b"\x2a" + bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) + content
    with pytest.raises(ModelError, match="levels deep"):
        SCHEMA.read("Layer", content)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Nothing but a ModelError comes out of a damaged file."""
    with contextlib.suppress(ModelError):
        SCHEMA.read("Layer", content)
