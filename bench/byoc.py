"""Models through each backend: agreement with compiled code, and times of compiled code, of each backend, and chosen.

Run as ``python bench/byoc.py [--only MODEL]`` (writes bench/results/byoc.md; with ``--only``, the rows of the other
models stay). Every library is written, loaded again in another process, and compared there with the compiled model; all
are then timed in turns in one process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend.byoc import choose_fastest, partition_for
from tilewright.relay.backend.byoc.measuring import Contestant, race
from tilewright.relay.backend.byoc.partition import prepared_for_backends
from tilewright.support.options import cache_dir

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402
from latency import exported  # noqa: E402

MODELS = ("resnet50", "mobilenet_v2", "bert_base")
BACKENDS = ("onednn", "openblas", "onnxruntime")


def load(path: str, inputs: str, output: str) -> None:
    """In another process: run a library on inputs from a file, and write what it gives."""
    library = tvm.runtime.load_module(path)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**dict(np.load(inputs)))
    np.savez(output, *[executor.get_output(number).numpy() for number in range(executor.get_num_outputs())])


def reloaded(one: Contestant, inputs: dict[str, Any], folder: Path) -> list[Any]:
    """The outputs of a model after it was exported and loaded by a new process."""
    one.factory.export_library(str(folder / "model.so"))
    np.savez(folder / "inputs.npz", **inputs)
    command = [
        sys.executable,
        __file__,
        "--load",
        *(str(folder / name) for name in ("model.so", "inputs.npz")),
    ]
    subprocess.run([*command, str(folder / "outputs.npz")], check=True)
    return list(np.load(folder / "outputs.npz").values())


def measure(name: str, folder: Path, backends: Sequence[str]) -> list[list[str]]:
    """The rows of one model."""
    with np.load(folder / "inputs.npz") as stored:
        inputs = {key: stored[key] for key in stored.files}
    module, params = relay.frontend.from_onnx(onnx.load(folder / "model.onnx"))
    base = prepared_for_backends(module, params)
    inputs = {
        key: value for key, value in inputs.items() if any(p.name_hint == key for p in base["main"].params)
    }
    modules = {"compiled": base}
    for backend in backends:
        modules[backend] = partition_for(base, backend, is_prepared=True)
    decision = choose_fastest(module, backends, "llvm", params)
    modules["chosen"] = decision.module
    contest = [Contestant(one, tvm.target.Target("llvm"), inputs) for one in modules.values()]
    seconds = race(contest, 7)
    rows, expected = [], None
    for what, one, took, made in zip(modules, contest, seconds, modules.values(), strict=True):
        with tempfile.TemporaryDirectory() as scratch:
            found = reloaded(one, inputs, Path(scratch))
        expected = expected or found
        worst = max(
            float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
            for a, b in zip(found, expected, strict=True)
        )
        parts = sum(bool(f.attrs.get("Compiler")) for f in made.functions.values())
        label = f"chosen ({decision.chosen})" if what == "chosen" else what
        rows.append(
            [name, label, str(parts), f"{worst:.1e}", f"{1e3 * took:.2f}", f"{seconds[0] / took:.2f}"]
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def earlier_rows(path: Path, measured: Sequence[str]) -> dict[str, list[list[str]]]:
    """The rows of an earlier run, by model, other than those of the models that are measured now."""
    found: dict[str, list[list[str]]] = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in MODELS and cells[0] not in measured:
            found.setdefault(cells[0], []).append(cells)
    return found


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        load(*arguments.load)
        return
    path = HERE / "results" / "byoc.md"
    names = [arguments.only] if arguments.only else list(MODELS)
    rows = earlier_rows(path, names)
    for name in names:
        rows[name] = measure(name, exported(name, cache_dir() / "bench"), arguments.backends)
    write_table(
        path,
        "Models through each backend",
        ["model", "by", "parts", "difference from compiled", "ms", "speed to compiled"],
        [row for name in MODELS for row in rows.get(name, ())],
        "The rows of a model are from one run, timed in turns. The difference is the largest, relative to the largest "
        "value, after loading in another process.",
    )


if __name__ == "__main__":
    main()
