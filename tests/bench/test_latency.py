"""The latency bench runs, on the smallest of its models."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_runtimes = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "onnxruntime")),
    reason="the models come from torch and are compared with ONNX Runtime's outputs",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the programs of this file keep exported models."""
    return tmp_path_factory.mktemp("models")


def bench(program: str, output: Path, models: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the bench on the smallest model, with one round."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TILEWRIGHT_CHECK": "0"}
    places = ["--output", str(output), "--models", str(models)]
    command = [sys.executable, str(ROOT / "bench" / program), "--only", "dqn", "--rounds", "1", *places]
    return subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def rows(text: str) -> list[list[str]]:
    """The cells of the tables' lines."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@needs_runtimes
def test_latency_writes_a_table_and_a_plot(tmp_path: Path, models: Path) -> None:
    """Tilewright's outputs agree with ONNX Runtime's, both are timed, and the ratio is that of the two times."""
    output = tmp_path / "latency.md"
    finished = bench("latency.py", output, models, "--contenders", "tilewright,onnxruntime")
    assert finished.returncode == 0, finished.stderr
    header, row = rows(output.read_text())
    cells = dict(zip(header, row, strict=True))
    assert cells["model"] == "dqn" and cells["GFLOP"] == "0.02", output.read_text()
    ours, theirs = float(cells["Tilewright ms"]), float(cells["ONNX Runtime ms"])
    assert float(cells["ONNX Runtime / ours"]) == pytest.approx(theirs / ours, rel=0.1)
    assert float(cells["compile s"]) > 0
    assert "Not measured" not in output.read_text()
    plot = output.with_suffix(".svg").read_text()
    assert plot.startswith("<svg") and "dqn" in plot


@pytest.mark.slow
@needs_runtimes
def test_ops_writes_kernels_and_operators(tmp_path: Path, models: Path) -> None:
    """The kernels of the model have times and shares; each of its five operators is timed beside ONNX Runtime."""
    output = tmp_path / "ops.md"
    finished = bench("ops.py", output, models)
    assert finished.returncode == 0, finished.stderr
    found = rows(output.read_text())
    kernels = [row for row in found if row[0] == "dqn"]
    assert sum("conv2d" in row[1] for row in kernels) == 3
    assert sum(float(row[5].rstrip("%")) for row in kernels) > 90
    operators = [row for row in found if row[0].startswith(("Conv ", "Gemm "))]
    assert len(operators) == 5
    assert all(float(row[3]) > 0 and float(row[4]) > 0 and row[1] == "dqn" for row in operators)


def test_an_unknown_model_or_contender_is_named(tmp_path: Path) -> None:
    """What cannot be measured is said before anything runs."""
    finished = bench("latency.py", tmp_path / "latency.md", tmp_path, "--contenders", "tensorflow")
    assert finished.returncode != 0
    assert "no contender is called tensorflow" in finished.stderr
