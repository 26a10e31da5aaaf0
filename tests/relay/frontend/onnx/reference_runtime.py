"""ONNX Runtime in a process of its own, so that its threads and libraries stay out of the tests' process.

``outputs(model, inputs)`` runs a model there; the process serves all tests and ends with them. Where ONNX Runtime is
not installed, the test that asks is skipped. Run as a script, this file is that process: it reads a folder a line, and
answers with what it wrote there.
"""

from __future__ import annotations

import atexit
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_server: list[subprocess.Popen[str]] = []


def outputs(model: Any, inputs: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The outputs of a model (a ModelProto or a path) for inputs by name."""
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed")
    if not _server:
        process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(_end, process)
        _server.append(process)
    process = _server[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = model if isinstance(model, (str, Path)) else folder / "model.onnx"
        if path == folder / "model.onnx":
            path.write_bytes(model.SerializeToString())
        (folder / "path").write_text(str(path))
        np.savez(folder / "inputs.npz", **{key: np.asarray(value) for key, value in inputs.items()})
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        if not answer.isdecimal():
            raise RuntimeError(f"ONNX Runtime: {answer}")
        with np.load(folder / "outputs.npz") as found:
            return [found[f"arr_{number}"] for number in range(int(answer))]


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _serve() -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    for line in sys.stdin:
        folder = Path(line.strip())
        try:
            session = onnxruntime.InferenceSession(
                (folder / "path").read_text(), options, providers=["CPUExecutionProvider"]
            )
            with np.load(folder / "inputs.npz") as inputs:
                made = session.run(None, dict(inputs))
            np.savez(folder / "outputs.npz", *made)
            print(len(made), flush=True)
        except Exception as error:  # noqa: BLE001 - every failure is an answer
            print(" ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    _serve()
