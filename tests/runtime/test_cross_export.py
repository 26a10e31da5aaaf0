"""Files for other systems: what their headers say, for every triple that people write."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.support.cbuild import zig_command

needs_zig = pytest.mark.skipif(zig_command() is None, reason="needs the ziglang package")


def function(target: str) -> Any:
    """A function with floating point, a division and a call of the math library."""
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: te.exp(a[i]) / 3.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target, name="f")


def machine_of(content: bytes) -> tuple[str, int]:
    """The format of a file and the number that it has for the machine."""
    if content[:4] == b"\x7fELF":
        return "ELF", struct.unpack_from("<H", content, 18)[0]
    if content[:4] == b"\xcf\xfa\xed\xfe":
        return "Mach-O", struct.unpack_from("<I", content, 4)[0]
    if content[:4] == b"\0asm":
        return "wasm", content[4]
    if content[:2] == b"MZ":
        (at,) = struct.unpack_from("<I", content, 60)
        assert content[at : at + 4] == b"PE\0\0"
        return "PE", struct.unpack_from("<H", content, at + 4)[0]
    return "COFF", struct.unpack_from("<H", content, 0)[0]


OBJECTS = [
    ("x86_64-pc-windows-msvc", "COFF", 0x8664),
    ("x86_64-windows-gnu", "COFF", 0x8664),
    ("x86_64-w64-mingw32", "COFF", 0x8664),
    ("x86_64-pc-win32", "COFF", 0x8664),
    ("arm64-pc-windows-msvc", "COFF", 0xAA64),
    ("aarch64-w64-mingw32", "COFF", 0xAA64),
    ("i686-pc-windows-msvc", "COFF", 0x014C),
    ("i686-w64-mingw32", "COFF", 0x014C),
    ("arm64-apple-darwin", "Mach-O", 0x0100000C),
    ("aarch64-macos", "Mach-O", 0x0100000C),
    ("x86_64-apple-macosx", "Mach-O", 0x01000007),
    ("arm64-apple-macosx11.0", "Mach-O", 0x0100000C),
    ("x86_64-unknown-linux-musl", "ELF", 62),
    ("x86_64-linux-android", "ELF", 62),
    ("aarch64-unknown-linux-musl", "ELF", 183),
    ("aarch64-linux-android21", "ELF", 183),
    ("armv7a-linux-androideabi19", "ELF", 40),
    ("armv7-linux-musleabihf", "ELF", 40),
    ("armv7l-linux-gnueabihf", "ELF", 40),
    ("riscv64-linux-gnu", "ELF", 243),
    ("riscv64-unknown-linux-musl", "ELF", 243),
    ("wasm32-wasi", "wasm", 1),
    ("wasm32-unknown-unknown", "wasm", 1),
    ("wasm32-unknown-emscripten", "wasm", 1),
    ("wasm64-unknown-unknown", "wasm", 1),
]


@pytest.mark.parametrize(("triple", "form", "machine"), OBJECTS)
def test_objects(triple: str, form: str, machine: int, tmp_path: Path) -> None:
    """LLVM writes the format of the system, however the triple is spelled."""
    path = tmp_path / "f.o"
    function(f"llvm -mtriple={triple}").export_library(str(path))
    assert machine_of(path.read_bytes()) == (form, machine)


def test_floats_are_passed_in_registers_on_hard_float_arm() -> None:
    """The last word of a short triple counts: a C function gets its float in ``s0``, not in ``r0``."""
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: tvm.tir.call_pure_extern("float32", "some_function", a[i]), name="b")
    made = tvm.build(te.create_schedule(b.op), [a, b], "llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a7")
    lines = made.get_source("asm").splitlines()
    calls = [index for index, line in enumerate(lines) if "bl\tsome_function" in line]
    assert calls and all(any("\ts0," in line for line in lines[call - 6 : call]) for call in calls[:1])


@pytest.mark.slow
@needs_zig
@pytest.mark.parametrize(
    ("triple", "suffix", "form", "machine"),
    [
        ("x86_64-pc-windows-msvc", ".dll", "PE", 0x8664),
        ("x86_64-windows-gnu", ".dll", "PE", 0x8664),
        ("x86_64-w64-mingw32", ".dll", "PE", 0x8664),
        ("x86_64-pc-win32", ".dll", "PE", 0x8664),
        ("i686-pc-windows-msvc", ".dll", "PE", 0x014C),
        ("i686-w64-mingw32", ".dll", "PE", 0x014C),
        ("aarch64-pc-windows-msvc", ".dll", "PE", 0xAA64),
        ("arm64-apple-darwin", ".dylib", "Mach-O", 0x0100000C),
        ("x86_64-apple-macosx", ".dylib", "Mach-O", 0x01000007),
        ("riscv64-linux-gnu", ".so", "ELF", 243),
        ("aarch64-unknown-linux-musl", ".so", "ELF", 183),
        ("armv7-linux-musleabihf", ".so", "ELF", 40),
        ("wasm32-unknown-unknown", ".wasm", "wasm", 1),
    ],
)
def test_libraries(triple: str, suffix: str, form: str, machine: int, tmp_path: Path) -> None:
    """zig links them, and the function is exported."""
    path = tmp_path / f"f{suffix}"
    function(f"llvm -mtriple={triple}").export_library(str(path))
    content = path.read_bytes()
    assert machine_of(content) == (form, machine)
    assert b"__tvm_ffi_f" in content
