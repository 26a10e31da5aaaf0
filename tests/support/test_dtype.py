"""Data types: parsing, parts, identity."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.support.dtype import BFLOAT, FLOAT, HANDLE, INT, UINT, DataType
from tilewright.support.errors import ExpressionError


@pytest.mark.parametrize(
    ("text", "code", "bits", "lanes"),
    [
        ("int32", INT, 32, 1),
        ("int", INT, 32, 1),
        ("uint", UINT, 32, 1),
        ("float", FLOAT, 32, 1),
        ("int4", INT, 4, 1),
        ("uint8x4", UINT, 8, 4),
        ("float16x8", FLOAT, 16, 8),
        ("float64", FLOAT, 64, 1),
        ("bfloat16", BFLOAT, 16, 1),
        ("bool", UINT, 1, 1),
        ("boolx16", UINT, 1, 16),
        ("uint1", UINT, 1, 1),
        ("handle", HANDLE, 64, 1),
        ("", HANDLE, 64, 1),
    ],
)
def test_parts(text: str, code: int, bits: int, lanes: int) -> None:
    """A name gives kind, bits and lanes; int, uint and float alone mean 32 bits."""
    dtype = DataType(text)
    assert (dtype.type_code, dtype.bits, dtype.lanes) == (code, bits, lanes)


def test_same_type_is_one_object() -> None:
    """Spellings of one type give one object, which compares as a string."""
    assert DataType("int") is DataType("int32")
    assert DataType("uint1") is DataType("bool")
    assert DataType("float32") == "float32"
    assert copy.copy(DataType("float32x4")) is DataType("float32x4")


@pytest.mark.parametrize(
    "text", ["float7", "int65", "int0", "bfloat32", "double", "int32x", "int32x0", "int32x70000", "x4"]
)
def test_bad_names(text: str) -> None:
    """What is not a type is refused, by name."""
    with pytest.raises(ExpressionError, match="not a data type") as raised:
        DataType(text)
    assert repr(text) in str(raised.value)


def test_kinds() -> None:
    """The kind predicates: bool is an unsigned integer of one bit, bfloat16 is a float."""
    assert DataType("bool").is_bool and DataType("bool").is_uint and DataType("bool").is_integral
    assert not DataType("uint8").is_bool
    assert DataType("bfloat16").is_float and DataType("bfloat16").is_bfloat16
    assert DataType("float16").is_float16 and not DataType("bfloat16").is_float16
    assert DataType("handle").is_handle and not DataType("handle").is_integral


def test_element_and_lanes() -> None:
    """Lanes and bits can be changed, the rest stays."""
    assert DataType("float32x8").element == "float32"
    assert DataType("float32").with_lanes(4) == "float32x4"
    assert DataType("boolx4").with_lanes(1) == "bool"
    assert DataType("uint8x4").with_bits(16) == "uint16x4"
    assert (
        DataType("bool").itemsize == 1
        and DataType("int4").itemsize == 1
        and DataType("float64").itemsize == 8
    )


@given(st.sampled_from(["int", "uint"]), st.integers(1, 64), st.integers(1, 64))
def test_name_round_trips(kind: str, bits: int, lanes: int) -> None:
    """The name of a type, parsed again, is the type."""
    dtype = DataType(f"{kind}{bits}x{lanes}" if lanes > 1 else f"{kind}{bits}")
    assert DataType(str(dtype)) is dtype
    assert (dtype.bits, dtype.lanes) == (bits, lanes)
