"""Latency of models whose sizes are open: one compiled program at several sizes, against ONNX Runtime and OpenVINO.

Run it:  python bench/dynamic.py [--only yolo,bert] [--contenders tilewright,onnxruntime] [--rounds 9]
         python bench/dynamic.py --isa avx2
         python bench/dynamic.py --only yolo --pieces FOLDER    # one model at a time; the table has all of the folder

Writes bench/results/dynamic.md, or dynamic_avx2.md. Float32, two threads, no tuning. ``models/open_sizes.py`` has the
models and the sizes. Every contender has a separate process, their rounds alternate, and medians are compared. Its
outputs must agree with those of ONNX Runtime before its times count. The table also has what compiling took, for the
open sizes and for the first of the sizes as constants.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from contenders import CONTENDERS, installed  # noqa: E402
from harness import PAUSE, add_model_options, write_table  # noqa: E402
from isa import add_option, beside, start_again  # noqa: E402
from latency import TOLERANCE, Child, Failed, arrays, child, chosen, difference, made_once, say  # noqa: E402

MODELS = (
    *("resnet18", "mobilenet_v2", "efficientnet_b0", "squeezenet_1_1", "convnext_tiny"),
    *("unet", "yolo", "bert", "characters", "mlp"),
)
NAMES = ("tilewright", "onnxruntime", "openvino")
OURS, REFERENCE = "tilewright", "onnxruntime"


@dataclass
class Row:
    """A model at one size: the median seconds of each contender, and why one has none."""

    model: str
    size: str
    seconds: dict[str, float] = field(default_factory=dict)
    failure: str = ""

    @property
    def ratio(self) -> float:
        """How many times faster than ONNX Runtime."""
        ours, theirs = self.seconds.get(OURS), self.seconds.get(REFERENCE)
        return math.nan if ours is None or theirs is None else theirs / ours


def exported(name: str, cache: Path) -> Path:
    """The folder of a model's files, which are made where they are missing."""
    definitions = b"".join(path.read_bytes() for path in sorted((HERE / "models").glob("*.py")))
    mark = hashlib.sha256(definitions).hexdigest()[:12]
    return made_once(cache / f"open-{name}-{mark}", "open_sizes.py", name)


@contextmanager
def at_size(folder: Path, number: int) -> Iterator[Path]:
    """A folder as contenders know it: the model, and the inputs of one size."""
    with tempfile.TemporaryDirectory(prefix="tilewright-dynamic-") as place:
        made = Path(place)
        for name, source in (("model.onnx", "model.onnx"), ("inputs.npz", f"inputs-{number}.npz")):
            (made / name).symlink_to(folder / source)
        (made / "about.json").symlink_to(folder / "about.json")
        yield made


def compiled(names: Sequence[str], folder: Path, scratch: Path, threads: int) -> dict[str, float]:
    """What the contenders that compile leave in the scratch folder; the seconds of each."""
    found = {}
    with at_size(folder, 0) as place:
        for name in names:
            if CONTENDERS[name].compile is not None:
                with child(name, place, scratch, threads, "compile") as compiler:
                    found[name] = float(compiler.answer()["compile"])
    return found


def measure(row: Row, folder: Path, scratch: Path, names: Sequence[str], rounds: int, threads: int) -> None:
    """Alternating rounds of all contenders at one size."""
    running: list[Child] = []
    times: dict[str, list[float]] = {}
    try:
        for name in names:
            runner = Child(name, folder, scratch, threads)
            try:
                runner.answer()
                found = difference(arrays(scratch / f"{name}.npz"), arrays(scratch / f"{REFERENCE}.npz"))
                if found > TOLERANCE:
                    raise Failed(f"outputs differ by {found:.1e}")
                running.append(runner)
            except Failed as failed:
                runner.end()
                row.failure += f"{name}: {failed} "
        for number in range(rounds):
            for runner in running if number % 2 == 0 else reversed(running):
                time.sleep(PAUSE)
                times.setdefault(runner.name, []).append(runner.round())
    finally:
        for runner in running:
            runner.end()
    row.seconds = {name: statistics.median(values) for name, values in times.items()}


def static_seconds(folder: Path, threads: int) -> float | None:
    """What compiling takes where the first size is constant."""
    program = (
        "import sys, time, numpy as np, tilewright as tvm\n"
        "from tilewright import relay\n"
        "shapes = {name: value.shape for name, value in np.load(sys.argv[2]).items()}\n"
        "begin = time.perf_counter()\n"
        "module, params = relay.frontend.from_onnx(sys.argv[1], shapes, freeze_params=True)\n"
        "with tvm.transform.PassContext(opt_level=3):\n"
        "    relay.build(module, target='llvm', params=params)\n"
        "print(time.perf_counter() - begin)\n"
    )
    environment = {**os.environ, "TILEWRIGHT_NO_CACHE": "1", "TILEWRIGHT_NUM_THREADS": str(threads)}
    arguments = [str(folder / "model.onnx"), str(folder / "inputs-0.npz")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return float(done.stdout) if done.returncode == 0 else None


def cells(row: Row, names: Sequence[str]) -> list[str]:
    """The row as text."""
    found = [f"{row.seconds[name] * 1e3:.2f}" if name in row.seconds else "-" for name in names]
    ratio = "-" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
    return [row.model, row.size, *found, ratio, row.failure.strip()]


def keep_piece(folder: Path, model: str, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Write what was measured of a model."""
    folder.mkdir(parents=True, exist_ok=True)
    piece = {"rows": [asdict(row) for row in rows], "notes": list(notes)}
    (folder / f"{model}.json").write_text(json.dumps(piece))


def kept_pieces(folder: Path) -> tuple[list[Row], list[str]]:
    """The rows and the notes of all models that were measured, in their usual order."""
    found = [folder / f"{model}.json" for model in MODELS]
    pieces = [json.loads(path.read_text()) for path in found if path.exists()]
    rows = [Row(**row) for piece in pieces for row in piece["rows"]]
    return rows, [note for piece in pieces for note in piece["notes"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser, rounds=9)
    parser.add_argument("--contenders", help="runtimes, with commas between them; the reference always runs")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--pieces", type=Path, help="keeps what was measured, by model, between runs")
    add_option(parser)
    options = parser.parse_args()
    start_again(options.isa)
    output = options.output or beside(HERE / "results" / "dynamic.md", options.isa)
    wanted = [name for name in chosen(options.contenders, NAMES, "contender") if installed(name)]
    # The reference is first: the others' outputs are compared with its own.
    names = [REFERENCE, *(name for name in wanted if name != REFERENCE)]
    rows: list[Row] = []
    compile_notes: list[str] = []
    for model in chosen(options.only, MODELS, "model"):
        folder = exported(model, options.models)
        with tempfile.TemporaryDirectory(prefix="tilewright-dynamic-") as place:
            scratch = Path(place)
            took = compiled(names, folder, scratch, options.threads).get(OURS)
            constant = static_seconds(folder, options.threads)
            if took is not None and constant is not None:
                compile_notes.append(f"{model} {took:.1f} s ({took / constant:.1f} x)")
            say(f"{model}: compiled")
            for number, size in enumerate(json.loads((folder / "about.json").read_text())["sizes"]):
                row = Row(model, size)
                rows.append(row)
                with at_size(folder, number) as files:
                    measure(row, files, scratch, names, options.rounds, options.threads)
                say(" ".join(cells(row, names)))
        if options.pieces is not None:
            measured = [row for row in rows if row.model == model]
            note = [one for one in compile_notes if one.startswith(f"{model} ")]
            keep_piece(options.pieces, model, measured, note)
            rows, compile_notes = kept_pieces(options.pieces)
        ratios = [one.ratio for one in rows if not math.isnan(one.ratio)]
        mean = math.exp(statistics.fmean(math.log(one) for one in ratios)) if ratios else math.nan
        note = (
            f"{options.threads} threads, medians of {options.rounds} rounds. Geometric mean against ONNX Runtime "
            f"{mean:.2f}, worst {min(ratios, default=math.nan):.2f}.\n\nCompiled, nothing cached, and times what the "
            f"same model takes with constant sizes: {', '.join(compile_notes)}."
        )
        header = ["model", "size", *(f"{name} ms" for name in names), "ONNX Runtime / ours", "failure"]
        write_table(output, "Models of open sizes", header, [cells(row, names) for row in rows], note)


if __name__ == "__main__":
    main()
