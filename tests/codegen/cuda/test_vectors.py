"""How vectors are moved in CUDA."""

import pytest

from tilewright.codegen.cuda.vectors import packet_for
from tilewright.support.dtype import DataType


@pytest.mark.parametrize(
    ("dtype", "kind", "lanes"),
    [
        ("float32x4", "float4", 4),
        ("float32x2", "float2", 2),
        ("float32x8", "float4", 4),
        ("float64x2", "double2", 2),
        ("float64x4", "double2", 2),
        ("int8x4", "char4", 4),
        ("int8x16", "uint4", 16),
        ("float16x2", "unsigned int", 2),
        ("float16x8", "uint4", 8),
        ("int64x2", "longlong2", 2),
    ],
)
def test_packets(dtype, kind, lanes):
    """The built-in type where there is one, else an integer of the size; at most sixteen bytes."""
    packet = packet_for(DataType(dtype))
    assert (packet.kind, packet.lanes) == (kind, lanes)


@pytest.mark.parametrize("dtype", ["float32x3", "boolx4", "float32", "float32x6"])
def test_what_goes_one_by_one(dtype):
    """Odd numbers of lanes, bools and scalars."""
    assert packet_for(DataType(dtype)) is None
