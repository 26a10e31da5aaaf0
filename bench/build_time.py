"""Build time from a model in memory to runnable code: cold, and from the compile cache.

Run as ``python bench/build_time.py`` (writes bench/results/build_time.md). Every build is the first one of a separate
process, after ``import tilewright``; a cold build has an empty cache folder. The budgets are 15 s cold, 1 s from the
cache, and 2 s for the graph passes.
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
from pathlib import Path
from typing import Any, cast

import tilewright as tvm
from tilewright import relay
from tilewright.relay import testing

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402
from latency import exported  # noqa: E402


def of_the_latency_bench(name: str) -> tuple[Any, Any]:
    """A model of ``bench/models`` through ONNX."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
    model = exported(name, cache) / "model.onnx"
    return cast(tuple[Any, Any], relay.frontend.from_onnx(str(model), freeze_params=True))


def text_recogniser() -> tuple[Any, Any]:
    """PP-OCR's recogniser from the package rapidocr-onnxruntime, for a line of 320 pixels."""
    package = importlib.util.find_spec("rapidocr_onnxruntime")
    if package is None or package.origin is None:
        raise SystemExit("PP-OCR's recogniser is in the package rapidocr-onnxruntime: install that")
    model = Path(package.origin).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx"
    shapes = {"x": (1, 3, 48, 320)}
    return cast(tuple[Any, Any], relay.frontend.from_onnx(str(model), shapes, freeze_params=True))


WARM_UP = "mlp"
"""Built first in a new cache folder: where Tilewright runs from its source tree, the C runtime is built into it."""

MODELS = {
    WARM_UP: lambda: testing.mlp.get_workload(batch_size=1),
    "resnet-50": lambda: testing.resnet.get_workload(num_layers=50),
    "vgg-16": lambda: testing.vgg.get_workload(batch_size=1, num_layers=16),
    "mobilenet": lambda: testing.mobilenet.get_workload(batch_size=1),
    "inception-v3": lambda: testing.inception_v3.get_workload(batch_size=1),
    "densenet-121": lambda: testing.densenet.get_workload(batch_size=1),
    "ghostnet": lambda: of_the_latency_bench("ghostnet"),
    "rexnet": lambda: of_the_latency_bench("rexnet"),
    "PP-OCR recogniser": lambda: text_recogniser(),
}


def build_once(model: str) -> dict[str, float]:
    """One build, and the graph passes once more by themselves."""
    module, parameters = MODELS[model]()
    with tvm.transform.PassContext(opt_level=3):
        started = time.perf_counter()
        library = relay.build(module, "llvm", params=parameters)
        built = time.perf_counter()
        relay.optimize(module, "llvm", parameters)
        optimized = time.perf_counter()
    return {
        "build": built - started,
        "passes": optimized - built,
        "compiled": library.cache_report.compiled if library.cache_report is not None else 0,
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
    options.add_argument("models", nargs="*", default=[name for name in MODELS if name != WARM_UP])
    given = options.parse_args()
    if given.once:
        print(json.dumps(build_once(given.once)))
        return
    header = ("model", "cold, s", "from the cache, s", "range", "graph passes, s")
    write_table(
        HERE / "results" / "build_time.md",
        "From a model to runnable code",
        header,
        [measured(name, given.rounds) for name in given.models],
        "relay.testing's models, two of bench/models and PP-OCR's recogniser, `relay.build` for `llvm` at "
        "opt_level 3. Every figure is of the first build in a "
        f"process; medians of {given.rounds} from the cache. "
        f"Load average of the machine at the end: {os.getloadavg()[0]:.1f}.",
    )


if __name__ == "__main__":
    main()
