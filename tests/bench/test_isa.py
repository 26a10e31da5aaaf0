"""The benches measure as on a processor with fewer features."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
TOOLS = (
    sys.platform == "linux" and platform.machine() == "x86_64" and all(map(shutil.which, ("cc", "objdump")))
)
needs_tools = pytest.mark.skipif(not TOOLS, reason="needs Linux on x86-64, a C compiler and objdump")


def hides_features() -> bool:
    """True on Linux with glibc where there is something to hide."""
    if not TOOLS or platform.libc_ver()[0] != "glibc":
        return False
    return "avx512f" in Path("/proc/cpuinfo").read_text().split()


needs_avx512 = pytest.mark.skipif(not hides_features(), reason="needs AVX-512, Linux with glibc and binutils")


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program that can import the bench and the package of this checkout."""
    paths = [str(BENCH), str(BENCH.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def compiled(source: str, kind: str, folder: Path) -> Path:
    """A shared library."""
    library = folder / "library.so"
    command = ["cc", "-x", kind, "-O1", "-shared", "-fPIC", "-o", str(library), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return library


@needs_avx512
@pytest.mark.parametrize(("isa", "left"), [("avx2", set()), ("avx_vnni", {"avxvnni"})])
def test_what_a_limit_hides_is_hidden_from_contenders_too(isa: str, left: set[str]) -> None:
    """The program comes back without AVX-512, and so does what it starts with the environment of contenders."""
    show = (
        "from tilewright.target.cpu import describe_cpu; found = describe_cpu('llvm'); "
        "print(found.vector_bits, *(name for name in found.features if name.startswith(('avx512', 'avxvnni', 'amx'))))"
    )
    found = run(
        f"import isa, os, subprocess, sys; isa.start_again('{isa}'); {show}; sys.stdout.flush(); "
        f'subprocess.run([sys.executable, "-c", "{show}"], env={{**os.environ, **isa.isa_environment()}})'
    )
    lines = [line.split() for line in found.stdout.splitlines()]
    assert [line[0] for line in lines] == ["256", "256"], found.stderr
    native = run(show).stdout.split()
    assert [set(line[1:]) for line in lines] == [left & set(native)] * 2


LIBRARY = """
#include <cpuid.h>
unsigned first;
unsigned features(void) { unsigned a, b, c, d; __cpuid_count(7, 0, a, b, c, d); return b; }
__attribute__((constructor)) static void begin(void) { first = features(); }
void trap(void) { __builtin_trap(); }
"""


@needs_avx512
def test_every_way_to_the_instruction_gets_the_answer(tmp_path: Path) -> None:
    """A library's constructor and every thread see no AVX-512, programs started do, and a real trap still ends one."""
    program = """if True:
        import ctypes, isa, subprocess, sys
        from concurrent.futures import ThreadPoolExecutor
        isa.start_again("avx2")
        library = ctypes.CDLL(sys.argv[1])
        with ThreadPoolExecutor(1) as pool:
            found = [library.features(), pool.submit(library.features).result()]
        found.append(ctypes.c_uint.in_dll(library, "first").value)
        print(*(value >> 16 & 1 for value in found), *(value >> 5 & 1 for value in found), flush=True)
        plain = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).features() >> 16 & 1)"
        subprocess.run([sys.executable, "-c", plain, sys.argv[1]])
        library.trap()
    """
    found = run(program, str(compiled(LIBRARY, "c", tmp_path)))
    assert found.stdout.splitlines() == ["0 0 0 1 1 1", "1"], found.stderr
    assert found.returncode == -signal.SIGILL


ASSEMBLY = """
    .globl first, second
    .text
constant:
    movl $0x0000a20f, %eax
    movabsq $0x1122a20f33445566, %rcx
    ret
first:
    cpuid
    ret
    .skip 300, 0x90
    leaq 0xa20f(%rip), %rdx
    xorl %ecx, %ecx
second:
    cpuid
    movl %ebx, %eax
    ret
    .section .rodata
    .word 0xa20f
    .section .note.GNU-stack, "", @progbits
"""


@needs_tools
def test_only_instructions_are_found_not_constants_with_their_bytes(tmp_path: Path) -> None:
    """Of six places with the two bytes, the two instructions are found, at their symbols' addresses."""
    library = compiled(ASSEMBLY, "assembler", tmp_path)
    assert library.read_bytes().count(b"\x0f\xa2") == 6
    subprocess.run(
        [sys.executable, str(BENCH / "cpuid_sites.py"), str(library), str(tmp_path / "list")], check=True
    )
    listing = subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout
    symbols = {
        line.split()[-1]: int(line.split()[0], 16) for line in listing.splitlines() if len(line.split()) == 3
    }
    found = [int(line, 16) for line in (tmp_path / "list").read_text().split()]
    assert found == [symbols["first"], symbols["second"]]
