"""Messages of generated code, with numbers that are known only when a check fails."""

from __future__ import annotations

import ctypes

import pytest

from tilewright.runtime.library import QUICK


def formatted(text: str, *values: int) -> str:
    numbers = (ctypes.c_int64 * len(values))(*values)
    QUICK.tilewright_set_error_format(b"ValueError", text.encode(), numbers, len(values))
    try:
        return QUICK.tilewright_error_message().decode()
    finally:
        QUICK.tilewright_clear_error()


def data_type(code: int, bits: int, lanes: int = 1) -> int:
    return code | bits << 8 | lanes << 16


@pytest.mark.parametrize(
    ("packed", "name"),
    [
        (data_type(2, 32), "float32"),
        (data_type(0, 8, 4), "int8x4"),
        (data_type(1, 1), "bool"),
        (data_type(6, 8), "bool"),
        (data_type(4, 16), "bfloat16"),
        (data_type(200, 3), "type of code 200 with 3 bits"),
    ],
)
def test_data_types(packed: int, name: str) -> None:
    """``{0:t}`` prints a data type as Tilewright writes it."""
    assert formatted("got {0:t}.", packed) == f"got {name}."


def test_devices_and_arguments() -> None:
    """``{0:k}`` prints a device's name and ``{0:a}`` what kind of argument came."""
    assert formatted("{0:k} {1:k}", 1, 2) == "cpu cuda"
    assert formatted("{0:k}", 99) == "of type 99"
    assert formatted("{0:a}, {1:a}, {2:a}, {3:a}", 0, 3, 70, 90) == "None, a float, a tensor, an object"


def test_numbers() -> None:
    """Plain placeholders print numbers, in any order and as often as they stand."""
    assert formatted("{1} {0} {1}", -7, 1 << 40) == "1099511627776 -7 1099511627776"


def test_what_is_no_placeholder_stays() -> None:
    """Braces without a known index are text."""
    assert formatted("{1} {x} {} {0", 5) == "{1} {x} {} {0"


def test_long_messages_are_cut() -> None:
    """A message longer than the buffer ends early and nothing is overwritten."""
    assert formatted("x" * 5000, 1) == "x" * 1023
    assert formatted("x" * 1020 + "{0}", 123456) == "x" * 1020 + "123"
