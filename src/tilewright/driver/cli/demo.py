"""``tilewright demo``: compile, check, time, export and load two kernels.

A matrix product and a softmax are written as tensor expressions, scheduled by hand for the machine's vectors and
caches, compiled, and compared with NumPy in value and in time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

import tilewright as tvm
from tilewright.driver.cli.demo_kernels import matrix_product, softmax
from tilewright.driver.cli.output import show_json, show_table
from tilewright.support.cbuild import CompilerError
from tilewright.support.errors import RuntimeFailure
from tilewright.target.cpu import describe_cpu

SIZE = 1024
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Outcome:
    """What was measured of one kernel. Times are in milliseconds, the error is relative to the largest value."""

    kernel: str
    compile_ms: float
    tilewright_ms: float
    numpy_ms: float
    error: float
    artefact: str


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="compile two kernels, check them and time them against NumPy")
    parser.add_argument(
        "-o", "--output", default="tilewright-demo", metavar="FOLDER", help="where to export to"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; an error where a kernel differs from NumPy."""
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    cpu = describe_cpu("llvm")
    if not arguments.json:
        print(
            f"Compiling for this machine: {cpu.name}, {cpu.cores} cores, vectors of {cpu.vector_bits} bits.\n"
        )
    generator = numpy.random.default_rng(0)
    left, right = (generator.standard_normal((SIZE, SIZE), dtype="float32") for _ in range(2))
    outcomes = [
        _measure(
            "matrix_product", matrix_product(SIZE, SIZE, SIZE, cpu), [left, right], numpy.matmul, folder
        ),
        _measure("softmax", softmax(SIZE, SIZE, cpu), [left], _numpy_softmax, folder),
    ]
    if arguments.json:
        show_json([asdict(outcome) for outcome in outcomes])
    else:
        _report(outcomes)
    return 0


def _measure(
    name: str,
    kernel: tuple[Any, list[Any]],
    inputs: list[numpy.ndarray[Any, Any]],
    reference: Callable[..., numpy.ndarray[Any, Any]],
    folder: Path,
) -> Outcome:
    """Compile one kernel, export it, load it again, and compare what was loaded with NumPy."""
    schedule, tensors = kernel
    started = time.perf_counter()
    module = tvm.build(schedule, tensors, "llvm", name=name)
    compile_ms = (time.perf_counter() - started) * 1e3
    expected = reference(*inputs)
    device = tvm.cpu()
    arrays = [tvm.nd.array(value, device) for value in inputs]
    output = tvm.nd.empty(expected.shape, "float32", device)

    artefact = folder / f"{name}.so"
    try:
        module.export_library(str(artefact))
        loaded = tvm.runtime.load_module(str(artefact))
        exported = str(artefact)
    except CompilerError:
        loaded = module
        exported = 'not linked, as there is no C compiler: pip install "tilewright[cross]"'
    loaded[name](*arrays, output)
    error = float(numpy.max(numpy.abs(output.numpy() - expected)) / numpy.max(numpy.abs(expected)))
    if not error < _TOLERANCE:
        raise RuntimeFailure(f"the compiled {name} differs from NumPy by {error:.1e} of the largest value")

    timed = loaded.time_evaluator(name, device, number=5, repeat=5)(*arrays, output)
    return Outcome(name, compile_ms, min(timed.results) * 1e3, _best_of(reference, inputs), error, exported)


def _best_of(reference: Callable[..., Any], inputs: list[Any]) -> float:
    """The mean time in milliseconds of the quickest of five rounds of five calls, as the compiled kernel is timed."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(5):
            reference(*inputs)
        times.append((time.perf_counter() - started) / 5)
    return min(times) * 1e3


def _numpy_softmax(values: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    powers: numpy.ndarray[Any, Any] = numpy.exp(values - values.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def _report(outcomes: list[Outcome]) -> None:
    rows = [
        [
            f"{outcome.kernel} {SIZE}x{SIZE}",
            f"{outcome.compile_ms:.0f} ms",
            f"{outcome.tilewright_ms:.3f} ms",
            f"{outcome.numpy_ms:.3f} ms",
            f"{outcome.numpy_ms / outcome.tilewright_ms:.2f}x",
            f"{outcome.error:.0e}",
        ]
        for outcome in outcomes
    ]
    show_table("kernels", ["kernel", "compiled in", "Tilewright", "NumPy", "speed", "error"], rows)
    rate = 2 * SIZE**3 / outcomes[0].tilewright_ms / 1e6
    print(f"The matrix product runs at {rate:.0f} GFLOP/s. Both results agree with NumPy.")
    print("Exported, loaded again and run from:")
    for outcome in outcomes:
        print(f"  {outcome.artefact}")
    print(
        "\nWhat to try next:\n"
        "  tilewright doctor            what this machine has, and what works on it\n"
        "  tilewright targets --cpus    processors that code can be made for\n"
        "  docs/tensor-expressions.md   write a kernel of your own\n"
        "  docs/schedules.md            make it fast"
    )
