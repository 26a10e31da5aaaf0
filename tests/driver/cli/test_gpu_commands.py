"""Models for a GPU on the command line: without one, and ``pytest -m gpu`` with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright.driver import tvmc
from tilewright.driver.cli import main

needs_gpu = pytest.mark.skipif(not tvm.cuda(0).exist, reason="there is no NVIDIA GPU here")
X = np.random.default_rng(3).standard_normal((2, 4)).astype("float32")


@pytest.fixture(scope="module")
def package(small_onnx: str, folder: Path) -> str:
    """A model compiled for a GPU, which needs none."""
    path = str(folder / "gpu.tar")
    assert main(["compile", small_onnx, "--target", "cuda", "-o", path]) == 0
    return path


@pytest.mark.skipif(tvm.cuda(0).exist, reason="there is a GPU here")
@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_machine_without_a_gpu(command: str, package: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Says what the model was compiled for."""
    assert main([command, package]) == 2
    error = capsys.readouterr().err
    assert "compiled for cuda" in error and "tilewright doctor" in error


def test_another_device_than_it_was_compiled_for(
    package: str, small_package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is refused with the option that would help."""
    assert main(["run", package, "--device", "cpu"]) == 2
    assert "--target llvm" in capsys.readouterr().err
    assert main(["run", small_package, "--device", "cuda"]) == 2
    assert "--target cuda" in capsys.readouterr().err


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("suffix", ["tar", "so"])
def test_run(
    suffix: str, small_onnx: str, tmp_path: Path, expected: Callable[[Any], Any], capsys: Any
) -> None:
    """Numbers and times, with the device named and without."""
    path = str(tmp_path / f"model.{suffix}")
    assert main(["compile", small_onnx, "--target", "cuda", "--validate", "-o", path]) == 0
    assert "agree" in capsys.readouterr().out
    np.savez(tmp_path / "x.npz", x=X)
    given = [
        "-i",
        str(tmp_path / "x.npz"),
        "-o",
        str(tmp_path / "y.npz"),
        "--print-time",
        "--profile",
        "--json",
    ]
    for device in ([], ["--device", "cuda"]):
        assert main(["run", path, *given, *device]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["seconds"]["min"] > 0 and report["profile"]
        with np.load(tmp_path / "y.npz") as stored:
            np.testing.assert_allclose(stored["y"], expected(X)[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(stored["p"], expected(X)[1], rtol=1e-4, atol=1e-5)


@needs_gpu
@pytest.mark.gpu
def test_open_sizes(open_onnx: str, tmp_path: Path, expected: Callable[[Any], Any]) -> None:
    """A program of the virtual machine."""
    path = str(tmp_path / "open.tar")
    assert main(["compile", open_onnx, "--target", "cuda", "-o", path]) == 0
    result = tvmc.run(tvmc.TVMCPackage(path), "cuda", inputs={"x": X[:1]}, repeat=2, number=2)
    np.testing.assert_allclose(result.outputs["y"], expected(X[:1])[0], rtol=1e-4, atol=1e-5)
    assert result.times.min > 0
    assert main(["profile", path, "--fill-shapes", "x:[1,4]"]) == 2


@needs_gpu
@pytest.mark.gpu
def test_profile(small_onnx: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels by the device's clock, its limits, and their PTX in the report."""
    assert main(["profile", small_onnx, "--target", "cuda", "-o", str(tmp_path / "report.html")]) == 0
    printed = capsys.readouterr().out
    assert "multiprocessors" in printed and "from memory" in printed
    assert main(["profile", small_onnx, "--target", "cuda", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 1e-7 < report["kernel_seconds"] < 1e-3
    assert report["limits"]["unit"] == "multiprocessor" and report["limits"]["peaks"]["float16"] > 1e12
    assert all(kernel["seconds"] > 0 for kernel in report["kernels"])
