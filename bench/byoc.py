"""Models through each backend: agreement with compiled code, and times of compiled code, of each backend, and chosen.

Run as ``python bench/byoc.py [--only MODEL]`` (writes bench/results/byoc.md; with ``--only``, the rows of the other
models stay). Every library is written, loaded by a new process beside the compiled model, compared with it there, and
timed in turns with it: a process has the threads of one backend only.
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
ROUNDS = 9


class Loaded(Contestant):
    """A library that is loaded from a file, and ready to be timed."""

    def __init__(self, path: str, inputs: dict[str, Any]) -> None:
        self.executor = tvm.runtime.load_module(path)["default"](tvm.cpu())
        for name, value in inputs.items():
            self.executor.set_input(name, value)
        self.executor.run()
        self.rounds = []
        self._runs = 1

    def outputs(self) -> list[Any]:
        """What it gives."""
        read = graph_executor.GraphModule(self.executor)
        return [read.get_output(number).numpy() for number in range(read.get_num_outputs())]


def compare(compiled: str, other: str, inputs: str) -> None:
    """In another process: the difference of two libraries on inputs from a file, and the milliseconds of each."""
    with np.load(inputs) as stored:
        given = {key: stored[key] for key in stored.files}
    contest = [Loaded(compiled, given), Loaded(other, given)]
    worst = max(
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in zip(contest[1].outputs(), contest[0].outputs(), strict=True)
    )
    seconds = race(contest, ROUNDS)
    ratios = sorted(
        mine / yours for mine, yours in zip(contest[0].rounds[1:], contest[1].rounds[1:], strict=True)
    )
    print(json.dumps([worst, *(1e3 * one for one in seconds), ratios[len(ratios) // 2]]))


def compared(compiled: Path, other: Path, inputs: Path) -> list[float]:
    """The same, asked from here."""
    command = [sys.executable, __file__, "--compare", *(str(path) for path in (compiled, other, inputs))]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(json.loads(ran.stdout.splitlines()[-1]))


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
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        np.savez(Path(scratch) / "inputs.npz", **inputs)
        for what, made in modules.items():
            with tvm.transform.PassContext(opt_level=3):
                relay.build(made, "llvm").export_library(str(Path(scratch) / f"{what}.so"))
        paths = {what: Path(scratch) / f"{what}.so" for what in modules}
        for what, made in modules.items():
            worst, ours, theirs, ratio = compared(
                paths["compiled"], paths[what], Path(scratch) / "inputs.npz"
            )
            parts = sum(bool(one.attrs.get("Compiler")) for one in made.functions.values())
            label = f"chosen ({decision.chosen})" if what == "chosen" else what
            figures = [f"{worst:.1e}", f"{ours:.2f}", f"{theirs:.2f}", f"{ratio:.2f}"]
            rows.append([name, label, str(parts), *figures])
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
    parser.add_argument("--compare", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*arguments.compare)
        return
    path = HERE / "results" / "byoc.md"
    names = [arguments.only] if arguments.only else list(MODELS)
    rows = earlier_rows(path, names)
    for name in names:
        rows[name] = measure(name, exported(name, cache_dir() / "bench"), arguments.backends)
    write_table(
        path,
        "Models through each backend",
        ["model", "by", "parts", "difference from compiled", "compiled ms", "ms", "speed to compiled"],
        [row for name in MODELS for row in rows.get(name, ())],
        "The rows of a model are from one run. Each is from a process that loaded this library and the compiled model: "
        "the largest difference, relative to the largest value, the best of the rounds that both ran in turns, and the "
        "median of the rounds' ratios. The first row of a model is the compiled one beside itself: noise.",
    )


if __name__ == "__main__":
    main()
