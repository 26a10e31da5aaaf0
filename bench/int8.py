"""Latency of quantised models: Tilewright against ONNX Runtime and OpenVINO, and against its own float32.

Run it:  python bench/int8.py [--only resnet18,mlp] [--rounds 9] [--form QOperator] [--signed] [--per-tensor]
         python bench/int8.py --by tilewright
         python bench/int8.py --isa avx2    # or avx_vnni
         python bench/int8.py --target "llvm -mcpu=core-avx2"    # against our own float32 only

Writes bench/results/int8.md, or int8_avx2.md. Batch 1, two threads, no tuning. ONNX Runtime's static quantiser, or
``tilewright quantize``, makes every model from one of ``bench/models`` (see ``models/quantize.py``). Every contender
has a separate process, their rounds alternate, and medians are compared. Outputs are compared with those of ONNX
Runtime on the same quantised model with every feature of the processor: the table has the correlation, since two exact
programs may still differ by a step wherever a number is halfway. ONNX Runtime itself is among those that are compared:
without VNNI it adds products of bytes in 16 bits, where they saturate.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from contenders import CONTENDERS, installed  # noqa: E402
from harness import PAUSE, write_table  # noqa: E402
from isa import add_option, beside, start_again  # noqa: E402
from latency import Child, Failed, arrays, child, chosen, exported, folder_of, say  # noqa: E402

MODELS = (
    *("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0"),
    *("bert_base", "unet", "mlp"),
)
PEERS = ("onnxruntime", "openvino")
LEAST_CORRELATION = 0.98
"""Of outputs with those of ONNX Runtime; below it something is wrong, and times do not count."""


@dataclass
class Row:
    """A model: the median milliseconds of each contender, by name, and how outputs of ours and of ONNX Runtime
    correlate with the reference's."""

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    correlation: float = math.nan
    peer_correlation: float = math.nan
    failure: str = ""

    def against_best(self) -> float:
        """How many times the speed of the faster peer."""
        best = min((self.seconds[name] for name in PEERS if name in self.seconds), default=math.nan)
        return best / self.seconds.get("tilewright", math.nan)

    def against_float32(self) -> float:
        """How many times the speed of our own float32."""
        return self.seconds.get("float32", math.nan) / self.seconds.get("tilewright", math.nan)


def kinds_of(options: argparse.Namespace) -> list[str]:
    """The words that tell ``models/quantize.py`` how to quantise, the form first."""
    more = {
        "signed": options.signed,
        "per-tensor": options.per_tensor,
        "tilewright": options.by == "tilewright",
    }
    return [options.form, *(kind for kind, wanted in more.items() if wanted)]


def quantized(name: str, cache: Path, kinds: list[str]) -> Path:
    """The folder of the quantised model, which is made where it is missing."""
    result = cache / "-".join([folder_of(name, cache).name, *kinds])
    if (result / "about.json").exists():
        return result
    program = [sys.executable, "-W", "ignore", str(HERE / "models" / "quantize.py")]
    more = [str(exported(name, cache)), str(result), *kinds]
    finished = subprocess.run([*program, *more], capture_output=True, text=True, check=False)
    if finished.returncode:
        reason = (finished.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        raise Failed(f"quantiser: {reason}")
    return result


def correlation(found: Path, expected: Path) -> float:
    """The least correlation of an output with the reference's."""
    pairs = zip(arrays(found), arrays(expected), strict=True)
    return min(float(np.corrcoef(one.ravel(), other.ravel())[0, 1]) for one, other in pairs)


@contextmanager
def scratch_folder(kept: Path | None, model: str) -> Iterator[Path]:
    """Where contenders write: a folder that is removed after the block, or one that is kept."""
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="tilewright-int8-") as place:
            yield Path(place)
    else:
        yield kept / model


def compiled(program: str, folder: Path, scratch: Path, threads: int) -> None:
    """The one-time step of a contender, unless its result is there."""
    scratch.mkdir(parents=True, exist_ok=True)
    if CONTENDERS[program].compile is not None and not any(scratch.glob("*.so")):
        with child(program, folder, scratch, threads, "compile") as compiler:
            compiler.answer()


def reference(folder: Path, place: Path, threads: int) -> Path:
    """Where the outputs of ONNX Runtime with every feature of the processor are."""
    scratch = place / "reference"
    scratch.mkdir(exist_ok=True)
    with child("onnxruntime", folder, scratch, threads, limited=False) as process:
        process.answer()
    return scratch / "onnxruntime.npz"


def measure(row: Row, folders: dict[str, Path], options: argparse.Namespace) -> None:
    """Fill in a row: prepare every contender, then alternate their rounds."""
    running: dict[str, Child] = {}
    threads, rounds = options.threads, options.rounds
    with scratch_folder(options.keep, row.name) as place:
        try:
            for name, folder in folders.items():
                program = "tilewright" if name == "float32" else name
                scratch = place / name
                try:
                    compiled(program, folder, scratch, threads)
                    if rounds == 0:
                        continue
                    running[name] = Child(program, folder, scratch, threads)
                    running[name].answer()
                    say(f"{row.name}: {name} is ready")
                except Failed as failed:
                    running.pop(name).end() if name in running else None
                    row.failure = f"{name}: {failed}"
                    say(f"{row.name}: {row.failure}")
            ours, theirs = [place / name / f"{name}.npz" for name in ("tilewright", "onnxruntime")]
            if ours.exists() and theirs.exists():
                expected = reference(folders["onnxruntime"], place, threads)
                row.correlation = correlation(ours, expected)
                row.peer_correlation = correlation(theirs, expected)
                if not row.correlation > LEAST_CORRELATION:
                    row.failure = f"outputs correlate by {row.correlation:.3f}"
                    running.pop("tilewright").end()
            times: dict[str, list[float]] = {name: [] for name in running}
            for number in range(rounds):
                for name in list(running) if number % 2 == 0 else reversed(list(running)):
                    time.sleep(PAUSE)
                    times[name].append(running[name].round())
            row.seconds = {name: statistics.median(values) for name, values in times.items()}
        finally:
            for process in running.values():
                process.end()


def geometric_mean(values: list[float]) -> float:
    """Of those that are numbers."""
    known = [value for value in values if math.isfinite(value)]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def report(path: Path, rows: list[Row], options: argparse.Namespace) -> None:
    """The table, with the geometric means of both ratios last."""

    def cells(row: Row) -> list[str]:
        names = ("tilewright", *PEERS, "float32")
        times = [f"{1e3 * row.seconds[name]:.2f}" if name in row.seconds else "-" for name in names]
        ratios = [f"{value:.2f}" for value in (row.against_best(), row.against_float32())]
        correlations = [f"{value:.4f}" for value in (row.correlation, row.peer_correlation)]
        return [row.name, *times, *ratios, *correlations, row.failure]

    header = ["model", "int8 ms", "ONNX Runtime int8", "OpenVINO int8", "our float32"]
    header += ["times the better peer", "times our float32", "correlation", "ONNX Runtime's", "failure"]
    means = [
        geometric_mean([row.against_best() for row in rows]),
        geometric_mean([row.against_float32() for row in rows]),
    ]
    last = ["geometric mean", *["-"] * 4, *(f"{value:.2f}" for value in means), "-", "-", ""]
    kind = "signed" if options.signed else "unsigned"
    tool = {"onnxruntime": "ONNX Runtime", "tilewright": "tilewright quantize"}[options.by]
    notes = f"Quantised by {tool}, {options.form} form, {kind} activations, "
    notes += f"weights with scales per {'tensor' if options.per_tensor else 'channel'}, {options.threads} threads, "
    notes += f"medians of {options.rounds} rounds."
    if options.target:
        notes += f" Compiled for {options.target}."
    write_table(path, "Quantised models", header, [*map(cells, rows), last], notes)


def main() -> None:
    """Quantise, measure and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="models, with commas between them")
    parser.add_argument("--rounds", type=int, default=9, help="0 only compiles, for --keep")
    parser.add_argument("--keep", type=Path, help="folder for compiled models, used where they are there")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--form", choices=("QDQ", "QOperator"), default="QDQ")
    parser.add_argument("--signed", action="store_true", help="signed activations")
    parser.add_argument(
        "--per-tensor", action="store_true", help="one scale for a weight, not one per output channel"
    )
    parser.add_argument(
        "--by", choices=("onnxruntime", "tilewright"), default="onnxruntime", help="quantiser"
    )
    parser.add_argument(
        "--target", help="what models are compiled for; the peers, which have all, are left out"
    )
    parser.add_argument("--no-float32", action="store_true", help="leave our own float32 out")
    parser.add_argument("--output", type=Path)
    add_option(parser)
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
    parser.add_argument("--models", type=Path, default=default, help="folder for exported models")
    options = parser.parse_args()
    if options.by == "tilewright" and (options.form != "QDQ" or options.per_tensor):
        parser.error("tilewright quantize writes the QDQ form only, with scales per channel")
    start_again(options.isa)
    peers = PEERS
    if options.target:
        os.environ["TILEWRIGHT_BENCH_TARGET"], peers = options.target, ()
    output = options.output or beside(HERE / "results" / "int8.md", options.isa)
    rows = []
    for name in chosen(options.only, MODELS, "model"):
        row = Row(name)
        rows.append(row)
        try:
            folder = quantized(name, options.models, kinds_of(options))
            folders = {one: folder for one in ("tilewright", *peers) if installed(one)}
            if not options.no_float32:
                folders["float32"] = exported(name, options.models)
            measure(row, folders, options)
        except Failed as failed:
            row.failure = str(failed)
            say(f"{name}: {failed}")
        print(json.dumps({"model": name, **row.seconds}), flush=True)
        if options.rounds:
            report(output, rows, options)


if __name__ == "__main__":
    main()
