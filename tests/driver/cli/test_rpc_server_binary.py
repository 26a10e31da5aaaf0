"""``tilewright rpc server-binary``: which machine is meant, and which one has no such server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.driver.cli import main, rpc_command
from tilewright.support.cbuild import build_rpc_server
from tilewright.support.errors import TilewrightError
from tilewright.support.triple import Triple


@pytest.mark.parametrize(
    ("written", "machine"),
    [
        ("aarch64-linux", "aarch64"),
        ("riscv64-unknown-linux-gnu", "riscv64"),
        ("raspberry-pi/4b", "aarch64"),
        ("raspberry-pi/2b", "armv7a"),
        ("llvm -mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a7", "armv7a"),
    ],
)
def test_the_machine(
    written: str,
    machine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A triple, a tag and a target are understood, and the program is written for their machine."""
    asked: list[str] = []

    def build(output: Path, triple: str) -> None:
        asked.append(Triple.parse(triple).machine)
        output.write_bytes(bytes(2048))

    monkeypatch.setattr(rpc_command, "build_rpc_server", build)
    output = tmp_path / "server"
    assert main(["rpc", "server-binary", "--target", written, "-o", str(output)]) == 0
    assert asked == [machine]
    assert "2 KB" in capsys.readouterr().out


def test_other_systems_have_none(tmp_path: Path) -> None:
    """The error says what to use instead."""
    with pytest.raises(
        TilewrightError, match="for Linux, not for x86_64-pc-windows-msvc: use the one in Python"
    ):
        build_rpc_server(tmp_path / "server", "x86_64-pc-windows-msvc")
    assert not list(tmp_path.iterdir())
