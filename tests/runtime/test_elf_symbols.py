"""Data of a shared library by symbol: what the system's loader finds, without loading anything."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest

from tilewright.runtime.elf import check_elf, machine_of
from tilewright.runtime.elf_symbols import ElfSymbols
from tilewright.support.cbuild import find_compiler, has_compiler
from tilewright.support.errors import TilewrightError

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler here")

SOURCE = """
const char text[] = "hello, library";
const unsigned long long number = 0x1122334455667788ull;
char later[64];
int function(void) { return 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a text and a number."""
    folder = tmp_path_factory.mktemp("elf")
    (folder / "data.c").write_text(SOURCE)
    find_compiler().run(["-shared", "-fPIC", folder / "data.c", "-o", folder / "data.so"])
    return folder / "data.so"


def test_what_the_loader_finds(library: Path) -> None:
    """Texts and numbers are those of the loaded library; other names are none."""
    content = library.read_bytes()
    if machine_of(content) is None:
        pytest.skip("this system's libraries are not ELF")
    symbols = ElfSymbols(content, "data.so")
    loaded = ctypes.CDLL(str(library))
    assert symbols.text_of("text") == ctypes.string_at(loaded["text"]).decode() == "hello, library"
    number = symbols.bytes_of("number")
    assert (
        number is not None
        and int.from_bytes(number, "little") == ctypes.c_uint64.in_dll(loaded, "number").value
    )
    assert symbols.bytes_of("absent") is None and symbols.text_of("absent") == ""
    with pytest.raises(ValueError, match="later lies outside the file"):
        symbols.bytes_of("later", 64)  # memory that is made when the library is loaded
    with pytest.raises(ValueError, match="larger than the file"):
        symbols.bytes_of("text", 1 << 40)


def test_damage_is_an_error(library: Path) -> None:
    """Whatever bytes change, there is an answer or an error of ours."""
    content = library.read_bytes()
    generator = random.Random(5)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(content)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.choice([generator.randrange(64), generator.randrange(len(damaged))])] = (
                generator.randrange(256)
            )
        try:
            check_elf(damaged, "data.so", any_machine=True)
            if machine_of(damaged) is not None and damaged[4] == 2:
                ElfSymbols(damaged, "data.so").text_of("text")
        except TilewrightError:
            refused += 1
    assert 100 < refused < 2000
