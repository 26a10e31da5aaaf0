"""The latency bench runs, on a small model in the place of one of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_runtimes = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="outputs are compared with ONNX Runtime's"
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of exported models, with a convolution and a product under the name of dqn: torch is not needed."""
    cache = tmp_path_factory.mktemp("models")
    program = "import sys; sys.path.insert(0, sys.argv[1]); import latency, pathlib; " + (
        "print(latency.folder_of('dqn', pathlib.Path(sys.argv[2])))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "bench"), str(cache)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(found.stdout.strip())
    folder.mkdir()
    random, helper = np.random.default_rng(0), onnx.helper
    shapes = {"kernel": (16, 16, 3, 3), "weight": (65536, 10)}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["state", "kernel"], ["convolved"], pads=[1, 1, 1, 1]),
            helper.make_node("Flatten", ["convolved"], ["flat"]),
            helper.make_node("Gemm", ["flat", "weight"], ["output"]),
        ],
        "small",
        [helper.make_tensor_value_info("state", onnx.TensorProto.FLOAT, (1, 16, 64, 64))],
        [helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, (1, 10))],
        [
            onnx.numpy_helper.from_array(random.normal(size=shape).astype("float32"), name)
            for name, shape in shapes.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "inputs.npz", state=random.normal(size=(1, 16, 64, 64)).astype("float32"))
    operations = 2 * 64 * 64 * 16 * 16 * 9 + 2 * 655360
    about = {"name": "dqn", "outputs": ["output"], "operations": operations, "bytes": 2_900_000}
    (folder / "about.json").write_text(json.dumps(about))
    return cache


def environment() -> dict[str, str]:
    """That of the bench: the package of this checkout, without the checks of tests."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TILEWRIGHT_CHECK": "0"}


def bench(program: str, output: Path, models: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the bench on the small model, with one round, on a machine whose limits are known."""
    places = ["--output", str(output), "--models", str(models), "--limits", "100,10"]
    command = [sys.executable, str(ROOT / "bench" / program), "--only", "dqn", "--rounds", "1", *places]
    return subprocess.run(
        [*command, *arguments], env=environment(), capture_output=True, text=True, timeout=300, check=False
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
    assert float(cells["ONNX Runtime / ours"]) == pytest.approx(theirs / ours, rel=0.2)
    assert float(cells["compile s"]) > 0
    assert float(cells["limit ms"]) == pytest.approx(0.29, abs=0.01)
    assert "Not measured" not in output.read_text()
    plot = output.with_suffix(".svg").read_text()
    assert plot.startswith("<svg") and "dqn" in plot


@pytest.mark.slow
@needs_runtimes
def test_ops_writes_kernels_and_operators(tmp_path: Path, models: Path) -> None:
    """The kernels of the model have times and shares; each of its two operators is timed beside ONNX Runtime."""
    output = tmp_path / "ops.md"
    finished = bench("ops.py", output, models)
    assert finished.returncode == 0, finished.stderr
    found = rows(output.read_text())
    kernels = [row for row in found if row[0] == "dqn"]
    assert sum("conv2d" in row[1] for row in kernels) == 1
    assert sum(float(row[5].rstrip("%")) for row in kernels) > 90
    operators = [row for row in found if row[0].startswith(("Conv ", "Gemm "))]
    assert len(operators) == 2
    assert all(float(row[3]) > 0 and float(row[4]) > 0 and row[1] == "dqn" for row in operators)


def test_an_unknown_model_or_contender_is_named(tmp_path: Path) -> None:
    """What cannot be measured is said before anything runs."""
    finished = bench("latency.py", tmp_path / "latency.md", tmp_path, "--contenders", "tensorflow")
    assert finished.returncode != 0
    assert "no contender is called tensorflow" in finished.stderr
