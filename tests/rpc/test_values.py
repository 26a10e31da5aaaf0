"""Values arrive as they were sent, and what is not one is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Reader
from tilewright.rpc.values import Decoder, Encoder
from tilewright.support.dtype import DataType


def refuse(*_):
    raise TypeError("no objects here")


def send(values):
    encoder = Encoder(refuse)
    for value in values:
        encoder.add(value)
    decoder = Decoder(Reader(encoder.head()), b"".join(map(bytes, encoder.bulk)), refuse)
    received = [decoder.value() for _ in values]
    decoder.end()
    return received


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.sampled_from(["float32", "int8", "uint16", "bool", "bfloat16", "float32x4"]).map(DataType),
)


@given(st.lists(st.recursive(plain, lambda inner: st.lists(inner, max_size=4), max_leaves=10), max_size=5))
def test_values_arrive_as_they_were_sent(values):
    received = send(values)
    assert received == values
    assert list(map(type, received)) == list(map(type, values))


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_any_bytes_are_values_or_a_protocol_error(head, bulk):
    def resolve(tag, reader):
        raise ProtocolError("no objects here")

    decoder = Decoder(Reader(head), bulk, resolve)
    try:
        decoder.value()
        decoder.end()
    except ProtocolError:
        pass


def test_an_integer_of_more_than_64_bits_is_refused():
    with pytest.raises(OverflowError, match="64 bits"):
        send([1 << 63])


def test_lists_are_limited():
    nested = []
    for _ in range(9):
        nested = [nested]
    with pytest.raises(ValueError, match="8 deep"):
        send([nested])
    with pytest.raises(ValueError, match="4096"):
        send([[0] * 4096])
