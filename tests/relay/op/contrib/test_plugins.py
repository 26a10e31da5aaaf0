"""Backends of other packages: by their entry points, and by ``--plugin``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver.cli import main as command
from tilewright.relay.op.contrib import BACKENDS, backend_names, get_backend, load_plugin, plugins
from tilewright.support.errors import TilewrightError
from tilewright.target.kind import KINDS

CHIP = """
from tilewright.relay.backend.byoc.uma import UMABackend
from tilewright.relay.dataflow_pattern import is_op, wildcard


class Chip(UMABackend):
    is_timed = False
    target_name = "plugged_chip"

    def __init__(self):
        super().__init__()
        self._register_pattern("erf", is_op("erf")(wildcard()), self.fits)

    def fits(self, root):
        rows = int(root.checked_type.shape[0])
        return True if rows <= 4 else f"{rows} rows are more than 4"


def leave():
    raise SystemExit("gone")


def nothing():
    pass


number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a plugin in it."""
    (tmp_path / "plugged_chip.py").write_text(CHIP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    plugins.installed_plugins.cache_clear()
    yield tmp_path
    plugins.installed_plugins.cache_clear()
    KINDS.pop("plugged_chip", None)
    BACKENDS.pop("plugged_chip", None)
    sys.modules.pop("plugged_chip", None)


def install(folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip would."""
    made = folder / "plugged_chip-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged_chip\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(f"[tilewright.backends]\nplugged_chip = {entry}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_installed_backends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point is listed without being loaded, and loaded when its backend is used."""
    install(folder, "plugged_chip:Chip", monkeypatch)
    assert "plugged_chip" in backend_names() and "plugged_chip" not in sys.modules
    assert get_backend("plugged_chip").name == "plugged_chip"
    assert backend_names().count("plugged_chip") == 1


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("plugged_chip:leave", "'plugged_chip:leave' cannot be loaded: SystemExit: gone"),
        ("plugged_chip:number", "number is a int, not a class or a function"),
        ("plugged_chip:absent", "cannot be loaded: AttributeError: .*absent"),
        ("plugged_ship", "cannot be loaded: ModuleNotFoundError: .*plugged_ship"),
        ("plugged_chip:nothing", "was loaded, but registered no backend 'plugged_chip'"),
    ],
)
def test_wrong_entry_points(folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str, said: str) -> None:
    """The error names the plugin and says what went wrong."""
    install(folder, entry, monkeypatch)
    with pytest.raises(TilewrightError, match=said):
        get_backend("plugged_chip")


def test_names_of_plugins() -> None:
    """A path is not a name."""
    with pytest.raises(TilewrightError, match=r"named as module or module:object, not 'chip\.py:x/y'"):
        load_plugin("chip.py:x/y")


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``tilewright compile --plugin chip:Chip --target "llvm, chip" --explain`` says what the chip takes, and why."""
    x = relay.var("x", shape=(4, 8))
    body = relay.concatenate([relay.erf(x), relay.erf(relay.exp(relay.concatenate([x, x], 0)))], 0)
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    made: Any = relay.backend.onnx_export.to_onnx(module, {}, "m", 17)
    Path("m.onnx").write_bytes(made.SerializeToString())
    arguments = ["compile", "m.onnx", "-o", "m.tar", "--explain", "--validate"]
    assert command([*arguments, "--target", "llvm, plugged_chip"]) != 0
    assert "there is no target 'plugged_chip'" in capsys.readouterr().err
    assert command([*arguments, "--target", "llvm, plugged_chip", "--plugin", "plugged_chip:Chip"]) == 0
    text = capsys.readouterr().out
    assert "tvmgen_default_plugged_chip_main_0 (plugged_chip): taken" in text
    assert "erf (1): plugged_chip: 8 rows are more than 4" in text
    assert "exp (1): plugged_chip: no pattern of plugged_chip takes exp here" in text
    np.save("x.npy", np.zeros((4, 8), "float32"))
    assert command(["run", "m.tar", "-i", "x=x.npy"]) == 0
