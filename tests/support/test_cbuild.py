"""Finding a C compiler, building the runtime, linking for this machine and others."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.support import cbuild
from tilewright.support.cbuild import Compiler, CompilerError, Triple, find_compiler, is_host, write_beside

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")


@pytest.mark.parametrize(
    ("text", "zig"),
    [
        ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu"),
        ("aarch64-linux-gnu", "aarch64-linux-gnu"),
        ("armv7a-linux-gnueabihf", "arm-linux-gnueabihf"),
        ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu"),
        ("x86_64-pc-windows-msvc", "x86_64-windows-gnu"),
        ("arm64-apple-macosx", "aarch64-macos"),
        ("x86_64-apple-darwin20", "x86_64-macos"),
        ("wasm32-unknown-unknown", "wasm32-wasi"),
        ("x86_64-unknown-linux-musl", "x86_64-linux-musl"),
    ],
)
def test_triples(text: str, zig: str) -> None:
    """LLVM's triples are understood in their long and short forms."""
    assert Triple.parse(text).zig_target == zig


def test_host() -> None:
    """An empty triple and this machine's own are the host; another processor or system is not."""
    host = cbuild.host_triple()
    assert is_host("")
    assert is_host(f"{host.machine}-pc-{host.system}-gnu")
    assert not is_host("sparc-unknown-linux-gnu")
    assert not is_host(f"{host.machine}-pc-windows-msvc")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any compiler the error names both ways to get one, and the target."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(cbuild, "zig_command", lambda: None)
    with pytest.raises(CompilerError, match="neither cc on the PATH nor the ziglang package"):
        find_compiler()
    with pytest.raises(CompilerError, match="for aarch64-linux-gnu"):
        find_compiler("aarch64-linux-gnu")


def test_zig_is_the_second_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """zig serves where there is no cc, and for other machines; it never uses this very processor's features."""
    monkeypatch.setattr(cbuild, "zig_command", lambda: ("zig", "cc"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert find_compiler().command == ("zig", "cc", "-mcpu=baseline")
    assert find_compiler("aarch64-linux-gnu").command == (
        "zig",
        "cc",
        "-target",
        "aarch64-linux-gnu",
        "-mcpu=baseline",
    )
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert find_compiler().command == ("/bin/cc",)
    assert find_compiler("riscv64-linux-gnu").command == ("/bin/riscv64-linux-gnu-gcc",)


@needs_compiler
def test_compiler_errors_carry_its_words(tmp_path: Path) -> None:
    """A failing compiler's command and output are in the error."""
    (tmp_path / "bad.c").write_text("int f( {")
    with pytest.raises(CompilerError, match=r"(?s)-c .*bad\.c.*error"):
        find_compiler().run(["-c", tmp_path / "bad.c", "-o", tmp_path / "bad.o"])


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    """A file that cannot be finished leaves the old one as it was, and nothing else."""
    output = tmp_path / "folder" / "file"
    write_beside(output, lambda path: path.write_bytes(b"first") and None)
    assert output.read_bytes() == b"first"
    assert output.stat().st_mode & 0o777 == 0o666 & ~cbuild._umask()

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyError("interrupted")

    with pytest.raises(KeyError):
        write_beside(output, fail)
    assert output.read_bytes() == b"first"
    assert os.listdir(output.parent) == ["file"]
    cbuild.write_bytes(output, b"second")
    assert output.read_bytes() == b"second"


@needs_compiler
def test_runtime_is_built_once_into_the_cache(tmp_path: Path) -> None:
    """From a source tree the library is built on first use, and found again without a compiler."""
    program = (
        "import tilewright.support.cbuild as c, time; p = c.runtime_library(); print(p, p.stat().st_mtime_ns)"
    )
    environment = {
        **os.environ,
        "TILEWRIGHT_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src"),
    }
    run = [sys.executable, "-c", program]
    first = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert first.startswith(str(tmp_path))
    again = subprocess.run(
        run, env={**environment, "PATH": ""}, capture_output=True, text=True, check=True
    ).stdout
    assert again == first


@needs_compiler
def test_sources_compile_without_warnings_when_embedded() -> None:
    """The copy of the runtime that goes into artefacts builds with warnings as errors, one object a source."""
    objects = cbuild.embedded_objects()
    assert [path.stem for path in objects] == [path.stem for path in cbuild.runtime_sources()]
    assert all(path.stat().st_size > 0 for path in objects)


def test_libinfo() -> None:
    """The description of the installation has TVM's names and text values."""
    info = cbuild.libinfo()
    assert info["USE_LLVM"] in ("ON", "OFF") and info["USE_RPC"] == "ON"
    assert Path(info["RUNTIME_LIBRARY"]).exists()
    assert all(isinstance(value, str) for value in info.values())


def test_compiler_is_a_value() -> None:
    """Compilers with one command are equal."""
    assert Compiler(("cc",)) == Compiler(("cc",))
