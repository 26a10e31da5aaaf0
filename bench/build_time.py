"""Build time from a model to runnable code: cold, and from the compile cache.

Run as ``python bench/build_time.py`` (writes bench/results/build_time.md). Every build is the first one of a separate
process, after ``import tilewright``; a cold build has an empty cache folder. Times are of reading the ONNX file, where
the model is one of ``bench/models``, and building; those of relay.testing's models, which are in memory, of building.
CPU seconds are of all processes together: they show what the compiler does, whatever else runs on the machine. The
budgets are 15 s cold, 1 s from the cache, and 2 s for the graph passes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.compile.units import watched
from tilewright.compile.workers import pool
from tilewright.ir.tensor_type import is_dynamic
from tilewright.relay import testing

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import dynamic  # noqa: E402
from harness import CACHE, write_table  # noqa: E402
from latency import exported  # noqa: E402

Shapes = dict[str, tuple[int, ...]]
Read = tuple[Path, Shapes | None]
"""An ONNX file, and the shapes that its inputs get."""


def from_file(path: Path, shapes: Shapes | None) -> tuple[Any, Any]:
    """A model read from its ONNX file."""
    return cast(tuple[Any, Any], relay.frontend.from_onnx(str(path), shapes, freeze_params=True))


def file_of(name: str) -> Read:
    """A model of ``bench/models``."""
    return exported(name, CACHE) / "model.onnx", None


def open_sizes(name: str) -> Read:
    """A model of ``models/open_sizes.py``."""
    return dynamic.exported(name, CACHE) / "model.onnx", None


def constant_sizes(name: str) -> Read:
    """The same model at the first of the sizes that it is measured at."""
    folder = dynamic.exported(name, CACHE)
    with np.load(folder / "inputs-0.npz") as inputs:
        return folder / "model.onnx", {key: inputs[key].shape for key in inputs.files}


def text_recogniser() -> Read:
    """PP-OCR's recogniser from the package rapidocr-onnxruntime, for a line of 320 pixels."""
    package = importlib.util.find_spec("rapidocr_onnxruntime")
    if package is None or package.origin is None:
        raise SystemExit("PP-OCR's recogniser is in the package rapidocr-onnxruntime: install that")
    model = Path(package.origin).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx"
    return model, {"x": (1, 3, 48, 320)}


WARM_UP = "mlp"
"""Built first in a new cache folder: where Tilewright runs from its source tree, the C runtime is built into it."""

IN_MEMORY: dict[str, Callable[[], Any]] = {
    WARM_UP: lambda: testing.mlp.get_workload(batch_size=1),
    "resnet-50": lambda: testing.resnet.get_workload(num_layers=50),
    "vgg-16": lambda: testing.vgg.get_workload(batch_size=1, num_layers=16),
    "mobilenet": lambda: testing.mobilenet.get_workload(batch_size=1),
    "inception-v3": lambda: testing.inception_v3.get_workload(batch_size=1),
    "densenet-121": lambda: testing.densenet.get_workload(batch_size=1),
}
READ: dict[str, Callable[[], Read]] = {
    **{name: partial(file_of, name) for name in ("resnet50", "ghostnet", "rexnet", "text_recogniser")},
    **{f"{name}, open sizes": partial(open_sizes, name) for name in ("yolo", "bert")},
    **{f"{name}, constant sizes": partial(constant_sizes, name) for name in ("yolo", "bert")},
    "PP-OCR recogniser": text_recogniser,
}
"""Models by name: made in memory, and read from a file."""


def compiled(module: Any, parameters: Any) -> int:
    """Compile a model, for the virtual machine where its sizes are open; how many kernels were not in the cache."""
    made: list[int] = []
    is_open = any(is_dynamic(one.type_annotation) for one in module["main"].params)
    with tvm.transform.PassContext(opt_level=3), watched(lambda done, _: made.append(done)):
        (relay.vm.compile if is_open else relay.build)(module, "llvm", params=parameters)
    return len(made)


def processor_seconds() -> float:
    """What this process and its children that have ended took of all cores."""
    return sum(os.times()[:4])


def build_once(model: str) -> dict[str, float]:
    """One build, and the graph passes once more by themselves."""
    if model in IN_MEMORY:
        module, parameters = IN_MEMORY[model]()
        started, before = time.perf_counter(), processor_seconds()
    else:
        file = READ[model]()
        started, before = time.perf_counter(), processor_seconds()
        module, parameters = from_file(*file)
    count = compiled(module, parameters)
    built = time.perf_counter()
    # The workers' seconds count when they have ended.
    pool().close()
    spent = processor_seconds() - before
    passes = time.perf_counter()
    with tvm.transform.PassContext(opt_level=3):
        relay.optimize(module, "llvm", parameters)
    return {
        "build": built - started,
        "processor": spent,
        "passes": time.perf_counter() - passes,
        "compiled": count,
    }


def in_process(model: str, cache: str) -> dict[str, float]:
    """``build_once`` in a separate process."""
    made = subprocess.run(
        [sys.executable, __file__, "--once", model],
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(made.stdout)
    return figures


def measured(model: str, rounds: int) -> list[str]:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as cache:
        in_process(WARM_UP, cache)
        cold = in_process(model, cache)
        again = [in_process(model, cache) for _ in range(rounds)]
    assert cold["compiled"] > 0 and all(figures["compiled"] == 0 for figures in again)
    cached = [figures["build"] for figures in again]
    return [
        model,
        f"{cold['build']:.1f}",
        f"{cold['processor']:.1f}",
        f"{statistics.median(cached):.2f}",
        f"{min(cached):.2f} to {max(cached):.2f}",
        f"{statistics.median(figures['passes'] for figures in again):.2f}",
    ]


def main() -> None:
    """The table over the models."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--once", metavar="MODEL", help="build one model in this process and print its times"
    )
    options.add_argument("--rounds", type=int, default=7, help="builds from the cache for each model")
    options.add_argument("models", nargs="*", default=[*IN_MEMORY, *READ][1:])
    given = options.parse_args()
    if given.once:
        print(json.dumps(build_once(given.once)))
        return
    header = ("model", "cold, s", "CPU s", "from the cache, s", "range", "graph passes, s")
    write_table(
        HERE / "results" / "build_time.md",
        "From a model to runnable code",
        header,
        [measured(name, given.rounds) for name in given.models],
        "relay.testing's models from memory, the others from their ONNX files; `relay.build`, or "
        "`relay.vm.compile` for open sizes, for `llvm` at opt_level 3. Every figure is of the first build in a "
        f"process; CPU s is of all processes of the cold build; medians of {given.rounds} from the cache. "
        f"Load average of the machine at the end: {os.getloadavg()[0]:.1f}.",
    )


if __name__ == "__main__":
    main()
