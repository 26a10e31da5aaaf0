"""The C runtime on other systems: it compiles without a warning for each, where the zig compiler is installed, and its
tests run on other processors, where QEMU is too."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.support.cbuild import FLAGS, SOURCES, runtime_sources, zig_command

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


@pytest.fixture(scope="session", params=["aarch64", "arm"])
def emulated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[str]]:
    """A processor, and the runtime compiled for it."""
    processor = str(request.param)
    if zig is None:
        pytest.skip("needs the ziglang package")
    if shutil.which(f"qemu-{processor}") is None:
        pytest.skip(f"needs qemu-{processor}, of QEMU's user-mode programs")
    folder = tmp_path_factory.mktemp(processor)
    for source in runtime_sources():
        command = [*zig, *_flags(processor), "-c", str(source), "-o", f"{source.stem}.o"]
        subprocess.run(command, cwd=folder, check=True)
    return processor, [str(path) for path in sorted(folder.glob("*.o"))]


def _flags(processor: str) -> list[str]:
    system = "linux-musl" if processor == "aarch64" else "linux-musleabihf"
    return ["-target", f"{processor}-{system}", "-std=c11", "-O1", "-DTILEWRIGHT_STATIC", "-D_GNU_SOURCE"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", sorted(Path(__file__).with_name("csrc").glob("test_*.c")), ids=lambda path: path.stem
)
def test_programs_on_another_processor(
    program: Path, emulated: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each C test holds on a 64-bit and a 32-bit ARM, emulated; some are about memory that is used again."""
    monkeypatch.delenv("TILEWRIGHT_GUARD_PAGES", raising=False)
    processor, objects = emulated
    command = [*(zig or ()), *_flags(processor), "-static", "-I", str(SOURCES), str(program), *objects]
    subprocess.run([*command, "-o", "program", "-pthread", "-lm"], cwd=tmp_path, check=True)
    run = [f"qemu-{processor}", "./program", "25", "emulated"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
