"""Running ONNX Runtime in a separate process, so that its threads and memory do not interfere.

Run as a program, this file reads a request from standard input; it needs only NumPy and onnxruntime.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_LIMIT_SECONDS = 600


@dataclass(frozen=True)
class PeerOutcome:
    """ONNX Runtime's outputs for every set of inputs and its best time; or why it failed."""

    outputs: list[list[np.ndarray[Any, Any]]] = field(default_factory=list)
    seconds: float = 0.0
    failure: str = ""


def is_installed() -> bool:
    """True if there is an ONNX Runtime to compare with."""
    return importlib.util.find_spec("onnxruntime") is not None


def run_onnxruntime(
    model: str, inputs: Sequence[Mapping[str, np.ndarray[Any, Any]]], threads: int = 0, timed_runs: int = 0
) -> PeerOutcome:
    """Run a model on every set of inputs; ``timed_runs`` more runs on the first are timed."""
    with tempfile.TemporaryDirectory() as folder:
        for number, values in enumerate(inputs):
            np.savez(Path(folder) / f"in{number}.npz", **dict(values))  # type: ignore[arg-type]
        request = {
            "model": str(Path(model).resolve()),
            "folder": folder,
            "sets": len(inputs),
            "threads": threads,
            "timed_runs": timed_runs,
        }
        try:
            done = subprocess.run(
                [sys.executable, str(Path(__file__).resolve())],
                input=json.dumps(request),
                capture_output=True,
                text=True,
                timeout=_LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return PeerOutcome(failure=f"it took more than {_LIMIT_SECONDS} seconds")
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            return PeerOutcome(failure=lines[-1] if lines else f"exit code {done.returncode}")
        outputs = []
        for number in range(len(inputs)):
            with np.load(Path(folder) / f"out{number}.npz", allow_pickle=False) as found:
                outputs.append([found[name] for name in found.files])
        return PeerOutcome(outputs, float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"]))


def main() -> None:
    """The other process."""
    import onnxruntime

    request = json.loads(sys.stdin.read())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if request["threads"]:
        options.intra_op_num_threads = request["threads"]
    session = onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    folder = Path(request["folder"])
    first: dict[str, Any] = {}
    for number in range(request["sets"]):
        with np.load(folder / f"in{number}.npz", allow_pickle=False) as stored:
            values = {name: stored[name] for name in stored.files}
        first = first or values
        found = session.run(None, values)
        np.savez(folder / f"out{number}.npz", **{f"o{place:04}": one for place, one in enumerate(found)})
    best = 0.0
    for _ in range(request["timed_runs"]):
        started = time.perf_counter()
        session.run(None, first)
        taken = time.perf_counter() - started
        best = min(best, taken) if best else taken
    sys.stdout.write(json.dumps({"seconds": best}) + "\n")


if __name__ == "__main__":
    main()
