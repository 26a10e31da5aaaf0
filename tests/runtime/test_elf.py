"""The look at ELF files: damage and foreign machines are found, and nothing crashes on any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.elf import check_elf
from tilewright.support.errors import TilewrightError


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(content: bytes, marked: bool) -> None:
    """Arbitrary bytes, with the mark of an ELF file or without, pass or are an error."""
    message = "it is fine"
    try:
        check_elf((b"\x7fELF" if marked else b"") + content, "it")
    except TilewrightError as error:
        message = str(error)
    assert message.startswith("it is ")


def test_real_file_passes(kernel_code: bytes) -> None:
    """An object of this machine's compiler passes; cut anywhere, it does not."""
    check_elf(kernel_code, "it")
    for size in range(4, len(kernel_code), 97):
        with pytest.raises(TilewrightError, match="it is damaged"):
            check_elf(kernel_code[:size], "it")


def test_foreign_machine(kernel_code: bytes) -> None:
    """Code for another processor is named as such."""
    foreign = kernel_code[:18] + (40).to_bytes(2, "little") + kernel_code[20:]
    with pytest.raises(ValueError, match="is code for ARM"):
        check_elf(foreign, "it")


def test_other_formats_pass() -> None:
    """What is not ELF is left to the system's loader."""
    check_elf(b"", "it")
    check_elf(b"MZ" + b"\0" * 100, "it")
