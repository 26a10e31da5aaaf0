"""Protobuf's text form is read as the encoding is, and damaged text is refused with its line."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.relay.frontend.common.protobuf import Schema
from tilewright.relay.frontend.common.protobuf_text import read_text
from tilewright.support.errors import ModelError

SCHEMA = Schema(
    {
        "Net": "name 1 string, layer 2 Layer*, scale 3 float, dims 4 int*, on 5 bool, mode 6 MAX|AVE, weights 7 float*",
        "Layer": "name 1 string, inner 2 Layer, raw 3 bytes",
    }
)


def test_fields_lists_comments_and_messages() -> None:
    """Every way to write a field; fields that are not described are skipped with what is in them."""
    text = """
    # a network
    name: "one" 'two'  scale: -1.5e2 dims: 3 dims: [4, -5]; on: true
    mode: AVE, weights: 1 weights: .5
    unknown { deep: { a: 1 } b: "}" } other: [1, 2]
    layer { name: "x\\"y" inner < name: "deep" > }
    layer: { raw: "\\x01\\377\\n" }
    """
    read = read_text(SCHEMA, "Net", text)
    assert (read.name, read.scale, read.dims, read.on, read.mode) == (
        "onetwo",
        -150.0,
        [3, 4, -5],
        True,
        "AVE",
    )
    np.testing.assert_array_equal(read.weights, [1.0, 0.5])
    assert [one.name for one in read.layer] == ['x"y', ""]
    assert read.layer[0].inner.name == "deep" and read.layer[1].raw == b"\x01\xff\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer {\n name: 'a'", "line 2: the text ends where '}' is expected"),
        ("name: }", "a value is expected"),
        ("\n\nscale: high", "line 3: the field scale is a number"),
        ("mode: SUM", "cannot be SUM"),
        ("name: 5", "is a text"),
        ("on: maybe", "neither true nor false"),
        ("layer: 5", "is a message"),
        ("5: 6", "the name of a field is expected"),
        ("name: 'open", "not understood"),
    ],
)
def test_damage_is_named(text: str, message: str) -> None:
    """Each kind of damage is an error with its line."""
    with pytest.raises(ModelError, match=message):
        read_text(SCHEMA, "Net", text)
