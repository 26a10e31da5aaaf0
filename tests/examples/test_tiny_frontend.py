"""The toy frontend of docs/first-tasks.md, as a package of its own and as a folder of relay/frontend."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tiny_frontend"
MODEL = "input x 2 4\ndense w1\nbias b1\nrelu\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with its weights."""
    generator = np.random.default_rng(3)
    weights = {"w1": generator.standard_normal((3, 4)), "b1": generator.standard_normal(3)}
    np.savez(tmp_path / "model.npz", **{name: value.astype("float32") for name, value in weights.items()})
    (tmp_path / "model.tiny").write_text(MODEL)
    return tmp_path / "model.tiny"


def run(folder: Path, paths: list[Path], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, with these folders to import from."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path) for path in paths])}
    return subprocess.run(
        [sys.executable, "-m", "tilewright", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )


@pytest.fixture(params=["entry point", "folder"])
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """What to import from: the package with what pip writes beside it, or a Tilewright that has the folder."""
    site = tmp_path / "site"
    if request.param == "folder":
        shutil.copytree(ROOT / "src", site, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(EXAMPLE, site / "tilewright" / "relay" / "frontend" / "tiny")
        return [site]
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE, site / "tiny_frontend")
    written = site / "tiny_frontend-1.0.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    points = [
        f"[{group}]\n" + "".join([f"{name} = {value}\n" for name, value in entries.items()])
        for group, entries in project["entry-points"].items()
    ]
    (written / "entry_points.txt").write_text("".join(points))
    return [site, ROOT / "src"]


def test_the_commands_read_the_format(model: Path, paths: list[Path]) -> None:
    """compile, run, inspect and opt know the format by the suffix, and by the content of a file without one."""
    folder = model.parent
    ran = run(folder, paths, "compile", "model.tiny", "-o", "model.tar", "--validate")
    assert ran.returncode == 0, ran.stderr
    assert "agrees" in ran.stdout
    shutil.copy(model, folder / "other")
    shutil.copy(folder / "model.npz", folder / "other.npz")
    ran = run(folder, paths, "inspect", "other", "--json")
    assert ran.returncode == 0 and '"nn.dense"' in ran.stdout, ran.stderr
    ran = run(folder, paths, "opt", "model.tiny", "--passes", "FoldConstant")
    assert ran.returncode == 0 and "nn.relu" in ran.stdout, ran.stderr


def test_errors_name_lines(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsupported operators come in one error; wrong weights and shapes name their line."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    from tiny_frontend import from_tiny

    from tilewright.relay.frontend.common import UnsupportedOperators
    from tilewright.support.errors import ModelError

    module, params = from_tiny(str(model), {"x": [5, 4]})
    assert module["main"].ret_type.concrete_shape == (5, 3)
    assert sorted(params) == ["b1", "w1"]
    assert str(module["main"].body.span.source_name.name) == "relu line 4"
    model.write_text(MODEL + "lstm\ngelu\nlstm\n")
    with pytest.raises(UnsupportedOperators) as raised:
        from_tiny(str(model))
    assert str(raised.value) == (
        "2 operators of the model (3 nodes) are not supported:\n  lstm, 2: line 5, line 7\n  gelu, 1: line 6"
    )
    for text, message in [
        ("input x 2 4\ndense w2\n", r"node 'line 2' \(dense\): there are no weights 'w2'; there are b1, w1"),
        ("input x 2 5\ndense w1\n", r"node 'line 2' \(dense\): "),
        ("input x 2 4\nrelu w1\n", r"node 'line 2' \(relu\): "),
        ("input x two\n", "line 1: an input has a name and sizes"),
        ("dense w1\n", "its first line has to be"),
    ]:
        model.write_text(text)
        with pytest.raises(ModelError, match=message):
            from_tiny(str(model))
    model.write_text(MODEL)
    with pytest.raises(ModelError, match="no input 'y'; it has x"):
        from_tiny(str(model), {"y": [1]})
