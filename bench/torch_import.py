"""The cost of importing a PyTorch model: seconds, beyond those in which PyTorch exports or traces it.

Run as ``python bench/torch_import.py`` (writes bench/results/torch_import.md). Each import has a separate process, in
which a small model was imported first, so that one-time loading does not count; PyTorch's own export is done before the
clock begins. The budget is one second of CPU time (an import has one thread), so that other load does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402

MODELS = ("resnet50",)
SECONDS = 1.0
FIRST = "first, {}"
"""The import is the first of its process: loading Tilewright counts too, loading PyTorch does not."""


def frontend() -> Any:
    """Our package, loaded within the time that counts."""
    from tilewright.relay import frontend as found

    return found


def through_export(model: Any, inputs: dict[str, Any], freeze: bool) -> Callable[[], Any]:
    """A program of ``torch.export``."""
    import torch

    program = torch.export.export(model, tuple(inputs.values()))
    return lambda: frontend().from_exported_program(program, freeze_params=freeze)


def through_script(model: Any, inputs: dict[str, Any], freeze: bool) -> Callable[[], Any]:
    """A traced module."""
    import torch

    traced = torch.jit.trace(model, tuple(inputs.values()), strict=False, check_trace=False)
    kinds = [
        (name, (tuple(value.shape), str(value.dtype).removeprefix("torch.")))
        for name, value in inputs.items()
    ]
    return lambda: frontend().from_pytorch(traced, kinds)


def through_onnx(model: Any, inputs: dict[str, Any], freeze: bool) -> Callable[[], Any]:
    """A file of ONNX."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(model, tuple(inputs.values()), str(path), dynamo=False, opset_version=17)
        content = path.read_bytes()
    return lambda: frontend().from_onnx(content, freeze_params=freeze)


WAYS: dict[str, tuple[Callable[[Any, dict[str, Any], bool], Callable[[], Any]], bool]] = {
    "from_exported_program": (through_export, False),
    "from_exported_program, frozen": (through_export, True),
    "from_pytorch": (through_script, False),
    "from_onnx": (through_onnx, False),
    "from_onnx, frozen": (through_onnx, True),
}
"""By their names the ways, and whether weights are constants of the module."""


def measure(name: str, way: str) -> dict[str, float]:
    """Seconds of one import, in this process."""
    import torch
    from models.export import made

    warnings.simplefilter("ignore")
    is_first = way not in WAYS
    prepare, freeze = next(found for one, found in WAYS.items() if way in (one, FIRST.format(one)))
    if not is_first:
        small = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3), torch.nn.ReLU()).eval()
        prepare(small, {"x": torch.zeros(1, 2, 4, 4)}, freeze)()
    model, inputs, _ = made(name)
    with torch.no_grad():
        call = prepare(model.eval(), inputs, freeze)
    begun, worked = time.perf_counter(), time.process_time()
    call()
    return {"seconds": time.perf_counter() - begun, "work": time.process_time() - worked}


def rows(rounds: int) -> list[list[str]]:
    """A row for each model and way; the median of some rounds."""
    table = []
    for name in MODELS:
        for way in [*WAYS, *map(FIRST.format, list(WAYS)[::2])]:
            program = [sys.executable, __file__, "--measure", name, way]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            lines = [
                subprocess.run(program, check=True, capture_output=True, text=True, env=environment).stdout
                for _ in range(rounds)
            ]
            found = sorted((json.loads(line.splitlines()[-1]) for line in lines), key=lambda one: one["work"])
            median = found[rounds // 2]
            kept = "yes" if median["work"] < SECONDS else "no"
            table.append([name, way, f"{median['seconds']:.2f}", f"{median['work']:.2f}", kept])
            print(table[-1], file=sys.stderr, flush=True)
    return table


def main() -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "WAY"), help="one import, in this process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "torch_import.md")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    header = ["model", "way", "seconds", "of the processor", f"under {SECONDS:.0f} s"]
    notes = "“First”: the first import of its process, in which Tilewright itself is loaded."
    write_table(options.output, "Importing PyTorch models", header, rows(options.rounds), notes)


if __name__ == "__main__":
    main()
