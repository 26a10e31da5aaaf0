"""``tilewright demo``: compiles a small digit-recognition network, and exports, loads, runs, checks and times it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.driver import tvmc
from tilewright.driver.cli.output import (
    bytes_text,
    check_output,
    show_json,
    show_table,
    show_text,
    terminal_width,
)
from tilewright.driver.cli.pictures import picture, side_by_side, terminal_characters
from tilewright.driver.cli.progress import progress
from tilewright.driver.tvmc.arguments import Commands
from tilewright.support.cbuild import CompilerError
from tilewright.target.cpu import describe_cpu

if TYPE_CHECKING:
    from tilewright.driver.tvmc.compiler import Settings
    from tilewright.driver.tvmc.model import TVMCModel, TVMCPackage
    from tilewright.driver.tvmc.validation import Validation

MODEL = Path(__file__).with_name("digits.onnx")
IMAGES = Path(__file__).with_name("digits.npz")
_CALLS = 300
_PER_LINE, _GAP = 5, 6
_PEERS = {"reference executor": "the reference executor", "ONNX Runtime": "ONNX Runtime"}


@dataclass(frozen=True)
class Prediction:
    """The network's prediction for one image."""

    label: int
    predicted: int
    probability: float


@dataclass(frozen=True)
class Latency:
    """The time of one image in one executor, in microseconds: the best of many calls."""

    executor: str
    microseconds: float


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="compile, check and time a small network for digits")
    parser.add_argument(
        "-o",
        "--output",
        default="tilewright-demo",
        metavar="FOLDER",
        help="where to export to; default: tilewright-demo",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 1 if the compiled network is wrong."""
    check_output(str(Path(arguments.output) / "digits.tar"), "-o")
    with np.load(IMAGES, allow_pickle=False) as stored:
        images, labels = stored["image"], stored["label"]
    cpu = describe_cpu("llvm")
    if not arguments.json:
        print(f"This machine: {cpu.name}, {cpu.cores} cores, {cpu.vector_bits}-bit vectors.")
    with progress("reading the model", arguments.json) as shown:
        model = tvmc.load(str(MODEL))
        settings = tvmc.compiler.make_settings("llvm")
        started = time.perf_counter()
        shown.step("compiling")
        package, note = _export(model, settings, Path(arguments.output))
        seconds = time.perf_counter() - started
        shown.step("running")
        predictions = _predict(package, images, labels)
        shown.step("comparing with the reference")
        inputs = [{"image": image[None]} for image in images]
        validation = tvmc.validation.validate(
            model,
            tvmc.runner.make_runnable(package),
            settings,
            inputs,
            random_inputs=0,
            onnx_path=str(MODEL),
        )
        shown.step("timing")
        latencies = _time(model, package, inputs[0])
    report = {
        "artefact": package.package_path,
        "bytes": Path(package.package_path).stat().st_size,
        "note": note,
        "seconds": seconds,
        "predictions": [asdict(one) for one in predictions],
        "validation": validation.as_json(),
        "latency": [asdict(one) for one in latencies],
    }
    if arguments.json:
        show_json(report)
    else:
        _show(report, images, predictions, validation, latencies)
    return 0 if validation.agrees else 1


def _export(model: TVMCModel, settings: Settings, folder: Path) -> tuple[TVMCPackage, str]:
    """The package, loaded from its file; objects instead of a shared library where nothing can link one."""
    compiled = settings.compile(model.mod, model.params)
    path = str(folder / "digits.tar")
    note = ""
    try:
        tvmc.compiler.write_package(model, compiled, path)
    except CompilerError:
        note = 'its library is not linked, because no C compiler was found: pip install "tilewright[cross]"'
        tvmc.compiler.write_package(model, compiled, path, output_format="tar")
    return tvmc.TVMCPackage(path), note


def _predict(package: TVMCPackage, images: Any, labels: Any) -> list[Prediction]:
    runnable = tvmc.runner.make_runnable(package)
    found = []
    for image, label in zip(images, labels, strict=True):
        runnable.set_inputs({"image": image[None]})
        probabilities = runnable.run()[0][0]
        best = int(np.argmax(probabilities))
        found.append(Prediction(int(label), best, float(probabilities[best])))
    return found


def _time(model: TVMCModel, package: TVMCPackage, values: dict[str, Any]) -> list[Latency]:
    """The compiled network, the executor that runs it operator by operator in NumPy, and ONNX Runtime, each called from
    Python with an array and giving one; and the compiled network as C calls it."""
    runnable = tvmc.runner.make_runnable(package)

    def compiled() -> None:
        runnable.set_inputs(values)
        runnable.run()

    reference = tvmc.validation.reference_function(model)
    found = [
        Latency("Tilewright", _best(compiled, _CALLS)),
        Latency("Tilewright, called from C", runnable.benchmark(repeat=5, number=100).min * 1e6),
        Latency("plain executor (NumPy, one operator at a time)", _best(lambda: reference(**values), 10)),
    ]
    if tvmc.validation.is_installed():
        outcome = tvmc.validation.run_onnxruntime(str(MODEL), [values], timed_runs=_CALLS)
        if not outcome.failure:
            found.append(Latency("ONNX Runtime, in its own process", outcome.seconds * 1e6))
    return found


def _best(function: Callable[[], Any], calls: int) -> float:
    """The time of the quickest call, in microseconds."""
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times) * 1e6


def _show(
    report: dict[str, Any],
    images: Any,
    predictions: list[Prediction],
    validation: Validation,
    latencies: list[Latency],
) -> None:
    print(f"Compiled and exported a convolutional network for digits in {report['seconds']:.1f} s.\n")
    characters = terminal_characters()
    blocks = [
        [*picture(image[0], characters), f"{one.predicted} ({one.probability:.0%})"]
        for image, one in zip(images, predictions, strict=True)
    ]
    block_width = max(len(line) for block in blocks for line in block) + _GAP
    per_line = max(min(_PER_LINE, ((terminal_width() or 80) + _GAP) // block_width), 1)
    for start in range(0, len(blocks), per_line):
        print(side_by_side(blocks[start : start + per_line], gap=_GAP) + "\n")
    right = sum(one.label == one.predicted for one in predictions)
    show_text(f"{right} of {len(predictions)} images are recognised; none of them was used in training.\n")
    for one in validation.comparisons:
        verb = "agrees" if one.deviation.agrees else "DISAGREES"
        show_text(
            f"The compiled network {verb} with {_PEERS[one.peer]}: largest error {one.deviation.absolute:.0e}."
        )
    fastest = latencies[0].microseconds
    rows = [
        [one.executor, f"{one.microseconds:,.1f} us", f"{one.microseconds / fastest:,.1f}x"]
        for one in latencies
    ]
    print()
    show_table("time for one image", ["executor", "latency", "ratio"], rows)
    show_text(f"Exported to {report['artefact']} ({bytes_text(report['bytes'])}), and run from there.")
    if report["note"]:
        show_text(report["note"])
    print(
        "\nWhat to try next:\n"
        f"  tilewright run {report['artefact']} --print-time --profile\n"
        f"  tilewright inspect {report['artefact']}\n"
        "  tilewright compile your_model.onnx --validate\n"
        "  tilewright doctor            what this machine has, and what works on it"
    )
