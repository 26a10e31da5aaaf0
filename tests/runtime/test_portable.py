"""The C runtime on other systems: it compiles without a warning for each, where the zig compiler is installed."""

import subprocess
from pathlib import Path

import pytest

from tilewright.support.cbuild import FLAGS, runtime_sources, zig_command

TARGETS = [
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "arm-linux-gnueabihf",
    "riscv64-linux-gnu",
    "x86_64-windows-gnu",
    "x86_64-macos",
    "aarch64-macos",
    "wasm32-wasi",
]

zig = zig_command()


@pytest.mark.slow
@pytest.mark.skipif(zig is None, reason="needs the ziglang package")
@pytest.mark.parametrize("form", ["library", "embedded"])
@pytest.mark.parametrize("target", TARGETS)
def test_compiles_without_warnings(target: str, form: str, tmp_path: Path) -> None:
    """Every source compiles for the target with warnings as errors, as a library and for embedding."""
    options = ["-DTILEWRIGHT_EMBEDDED"] if form == "embedded" else []
    for source in runtime_sources():
        command = [*(zig or ()), "-target", target, *FLAGS, *options, "-c", str(source), "-o", "out.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
