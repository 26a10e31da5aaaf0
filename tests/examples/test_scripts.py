"""The examples and the tour run as a reader would run them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("examples/gemm.py", ["100"], "GFLOP/s"),
        ("examples/auto_scheduler_matmul.py", ["32", "4"], "agrees with NumPy"),
        (
            "examples/autotvm_matmul.py",
            ["--size", "64", "--trials", "4", "--log", str(Path(tempfile.mkdtemp()) / "matmul.log")],
            "agrees with NumPy",
        ),
        ("examples/custom_sketch_rule.py", ["2"], "blocks_of_rows: agrees with NumPy"),
        ("examples/row_kernels.py", [], "layer_norm:"),
        ("examples/serial_target.py", [], "serial: agrees with NumPy"),
        ("examples/accelerator/run.py", [], "the artefact model.so loads and gives them again"),
        pytest.param("examples/torch_compile.py", [], "training: loss", marks=needs_torch),
        pytest.param(
            "examples/tune_on_ray.py",
            ["5"],
            "agrees with NumPy",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(
                    importlib.util.find_spec("ray") is None, reason="builders on a cluster need ray"
                ),
            ],
        ),
        ("docs/tour.py", [], "dimension 0 of argument 1 (B) is 5, expected 10"),
    ],
)
def test_scripts_run(script: str, arguments: list[str], expected: str) -> None:
    """Each script checks its own numbers and prints what it promises."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / script), *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    assert expected in ran.stdout
