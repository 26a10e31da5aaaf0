"""Wheels of every platform: what is checked of them, and one that is built."""

import dataclasses
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from binary_formats import Binary, read_binary
from check_wheel import WheelError, check_binary, check_wheel, newest_glibc
from wheel_platforms import PLATFORMS

ROOT_TOOL = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "build_wheels.py")
EXPORTS = ("tilewright_graph_create",)
WINDOWS = ("KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll")
RIGHT = {
    "linux-x86_64": Binary(
        "ELF", "x86_64", ("libc.so.6", "libm.so.6"), ("GLIBC_2.2.5", "GLIBC_2.17"), exports=EXPORTS
    ),
    "linux-aarch64": Binary(
        "ELF", "aarch64", ("libc.so.6", "ld-linux-aarch64.so.1"), ("GLIBC_2.17",), exports=EXPORTS
    ),
    "macos-x86_64": Binary("Mach-O", "x86_64", ("/usr/lib/libSystem.B.dylib",), (), (11, 0), exports=EXPORTS),
    "macos-arm64": Binary("Mach-O", "arm64", ("/usr/lib/libSystem.B.dylib",), (), (11, 0), True, EXPORTS),
    "windows-x86_64": Binary("PE", "x86_64", WINDOWS, (), (6, 0), exports=EXPORTS),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_library_that_needs_only_the_system_is_right(name):
    """One of each platform."""
    check_binary(RIGHT[name], PLATFORMS[name])


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("linux-x86_64", {"versions": ("GLIBC_2.34",)}, "needs glibc 2.34"),
        ("linux-x86_64", {"versions": ("GLIBCXX_3.4",)}, "needs glibc 999"),
        ("linux-x86_64", {"needed": ("libstdc++.so.6",)}, r"loads libstdc\+\+"),
        ("linux-x86_64", {"machine": "aarch64"}, "not ELF for x86_64"),
        ("linux-aarch64", {"format": "PE"}, "not ELF"),
        ("macos-arm64", {"oldest_system": (14, 0)}, r"macOS \(14, 0\)"),
        ("macos-arm64", {"is_signed": False}, "not signed"),
        ("macos-x86_64", {"needed": ("/opt/homebrew/lib/libomp.dylib",)}, "libomp"),
        ("windows-x86_64", {"needed": ("libwinpthread-1.dll",)}, "libwinpthread"),
        ("windows-x86_64", {"exports": ()}, "does not export"),
        ("windows-x86_64", {"exports": (*EXPORTS, "main")}, "not its own: main"),
    ],
)
def test_a_library_that_some_system_cannot_load_is_refused(name, changes, message):
    """Newer versions, other libraries, other machines, names that are not ours."""
    with pytest.raises(WheelError, match=message):
        check_binary(dataclasses.replace(RIGHT[name], **changes), PLATFORMS[name])


@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler for Linux"
)
def test_needs_of_a_library_are_read(tmp_path):
    """The libraries, versions and names that the linker wrote."""
    source, library = tmp_path / "one.c", tmp_path / "one.so"
    source.write_text(
        "#include <math.h>\n#include <stdio.h>\n"
        'int exported(double x) { return puts("x") + (int)pow(x, x); }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-O0", str(source), "-o", str(library), "-lm"], check=True)
    found = read_binary(library.read_bytes())
    assert found.format == "ELF" and {"libc.so.6", "libm.so.6"} <= set(found.needed)
    assert "exported" in found.exports and "puts" not in found.exports and newest_glibc(found) >= (2, 2)


def test_other_files_are_no_libraries():
    """A text is refused."""
    with pytest.raises(ValueError, match="not an ELF"):
        read_binary(b"plain text")


@pytest.mark.slow
def test_the_wheel_of_this_machine_is_built_and_checked(tmp_path):
    """One command gives a wheel that loads on an old Linux; one that lacks a file is found out."""
    pytest.importorskip("ziglang")
    pytest.importorskip("setuptools", minversion="77")
    ran = subprocess.run(
        [sys.executable, ROOT_TOOL, "linux-x86_64", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "glibc 2.17 at most" in ran.stdout
    (wheel,) = tmp_path.glob("*.whl")
    damaged = tmp_path / "damaged" / wheel.name
    damaged.parent.mkdir()
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(damaged, "w") as copy:
        for name in whole.namelist():
            if name != "tilewright/py.typed":
                copy.writestr(name, whole.read(name))
    with pytest.raises(WheelError, match=r"py\.typed"):
        check_wheel(damaged, PLATFORMS["linux-x86_64"])


def test_unknown_platforms_are_named():
    """The message lists those that there are."""
    ran = subprocess.run([sys.executable, ROOT_TOOL, "amiga"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "amiga" in ran.stderr and "linux-aarch64" in ran.stderr
