"""Where the time of the models goes: their kernels, and their operators one by one.

Run it:  python bench/ops.py [--only resnet50,vgg16] [--rounds 9] [--without operators] [--isa avx2]

Writes bench/results/ops.md, or ops_avx2.md. First every kernel of each compiled model, timed while the model runs:
operations and bytes per second, and the percentage of the machine's limit. Then every distinct operator (of the kinds
that take time) as a separate model, compared with ONNX Runtime: both have separate processes, and rounds alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from contenders import CONTENDERS, Task, built_by_tilewright  # noqa: E402
from harness import add_model_options, finish, thread_environment, timed, write_table  # noqa: E402
from isa import add_option, beside, isa_environment, start_again  # noqa: E402
from latency import Failed, chosen, exported, say  # noqa: E402
from models import FAMILIES  # noqa: E402
from operators import Operator, distinct_operators  # noqa: E402

PAUSE = 0.1
"""Seconds before a contender's turn. A turn is a row of operators, so that threads of the other have gone to sleep."""

TURN = 12
"""Operators in one turn."""

SHORT = {"least_seconds": 0.005, "warm_up": 0.02}
"""How long one operator is called: the core is awake from the operator before it, and there are hundreds."""


# ---- the contender's process ----


def prepare(contender: str, task: Task) -> tuple[Callable[[], float], dict[str, Any]]:
    """A timed run of an operator, and what its compiler knows of it."""
    if contender != "tilewright":
        return timed(CONTENDERS[contender].prepare(task).call, **SHORT), {}
    import tilewright as tvm
    from tilewright.contrib import graph_executor
    from tilewright.relay.analysis.work import count_bytes, count_flops

    module, library = built_by_tilewright(task)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for name, value in task.inputs().items():
        executor.set_input(name, value)
    main = module["main"]
    # Parameters that became constants of the program are read, too.
    weights = sum(int(value.numpy().nbytes) for value in library.get_params().values())
    return timed(executor.run, **SHORT), {"flops": count_flops(main), "bytes": count_bytes(main) + weights}


def serve(contender: str, threads: int) -> None:
    """For each line with folders, get those operators ready; for each line with numbers, time them."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    runs: list[Callable[[], float] | None] = []
    for line in sys.stdin:
        asked = json.loads(line)
        if "prepare" in asked:
            runs, told = [], []
            for folder in asked["prepare"]:
                try:
                    run, facts = prepare(contender, Task(Path(folder), Path(folder), threads))
                except Exception as error:  # noqa: BLE001 - an operator that fails is a row of the table
                    run, facts = None, {"failure": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
                runs.append(run)
                told.append(facts)
            answers.write(json.dumps(told) + "\n")
        else:
            found = [runs[index] for index in asked["time"]]
            answers.write(json.dumps([run() if run else None for run in found]) + "\n")


# ---- operators, one by one ----


@dataclass
class Measured:
    """An operator's times by contender, and what it takes at least."""

    operator: Operator
    models: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Server:
    """A contender's process that has many operators ready."""

    def __init__(self, contender: str, threads: int) -> None:
        environment = thread_environment(threads) | {"TILEWRIGHT_NO_CACHE": "1"}
        self.contender = contender
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                str(HERE / "ops.py"),
                "--serve",
                contender,
                "--threads",
                str(threads),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, **isa_environment()},
        )

    def ask(self, question: dict[str, Any]) -> Any:
        """One line there, one line back."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.contender} ended with {self.process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        """Let it finish, and wait until it has."""
        finish(self.process)


def time_operators(measured: Sequence[Measured], names: Sequence[str], rounds: int, threads: int) -> None:
    """Fill in the times: a few operators in each turn of a contender."""
    servers = [Server(name, threads) for name in names]
    try:
        folders = [str(one.operator.folder) for one in measured]
        for server in servers:
            for one, facts in zip(measured, server.ask({"prepare": folders}), strict=True):
                if "failure" in facts:
                    one.failures[server.contender] = facts["failure"]
                one.facts |= facts
        times: dict[tuple[int, str], list[float]] = {}
        for start in range(0, len(measured), TURN):
            turn = list(range(start, min(start + TURN, len(measured))))
            for number in range(rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    time.sleep(PAUSE)
                    for index, seconds in zip(turn, server.ask({"time": turn}), strict=True):
                        if seconds is not None:
                            times.setdefault((index, server.contender), []).append(seconds)
        for (index, name), values in times.items():
            measured[index].seconds[name] = statistics.median(values)
    finally:
        for server in servers:
            server.end()


def operator_rows(measured: Sequence[Measured], limits: Any) -> Iterator[list[str]]:
    """The table, with what takes most time more than it need first."""

    def lost(one: Measured) -> float:
        mine, theirs = one.seconds.get("tilewright"), one.seconds.get("onnxruntime")
        return one.operator.count * (mine - theirs) if mine is not None and theirs is not None else 0.0

    for one in sorted(measured, key=lost, reverse=True):
        mine, theirs = one.seconds.get("tilewright"), one.seconds.get("onnxruntime")
        start = [one.operator.name, ", ".join(one.models), str(one.operator.count)]
        if mine is None or "flops" not in one.facts:
            yield [*start, *["-"] * 5, one.failures.get("tilewright", "-")]
            continue
        flops, size = one.facts["flops"], one.facts["bytes"]
        yield [
            *start,
            f"{mine * 1e6:.0f}",
            "-" if theirs is None else f"{theirs * 1e6:.0f}",
            f"{flops / mine / 1e9:.0f}",
            f"{size / mine / 1e9:.1f}",
            f"{limits.least_seconds(flops, size) / mine:.0%}",
            one.failures.get("onnxruntime", "-") if theirs is None else f"{theirs / mine:.2f}",
        ]


# ---- the kernels of whole models ----


def kernel_profile(folder: Path, repeat: int) -> Any:
    """The model compiled, and a clock at every kernel."""
    import tilewright as tvm
    from tilewright.contrib import graph_executor
    from tilewright.driver.profile.kernels import measure_kernels

    task = Task(folder, folder, 0)
    _, library = built_by_tilewright(task)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for name, value in task.inputs().items():
        executor.set_input(name, value)
    executor.run()
    return measure_kernels(executor.module, library.get_graph_json(), repeat)


def kernel_rows(name: str, profile: Any, share: float) -> Iterator[list[str]]:
    """The kernels of a model that take at least a share of its time."""
    for kernel in profile.kernels():
        if kernel.share < share:
            continue
        rate, limit = kernel.gflops_per_second, kernel.of_limit
        yield [
            name,
            kernel.short_name,
            " ".join(dict.fromkeys(step.shapes[0].partition("[")[2].rstrip("]") for step in kernel.steps)),
            str(kernel.calls),
            f"{kernel.seconds * 1e3:.3f}",
            f"{kernel.share:.1%}",
            "-" if rate is None else f"{rate:.0f}",
            f"{kernel.gigabytes_per_second or 0.0:.1f}",
            "-" if limit is None else f"{limit:.0%}",
            kernel.bound_by or "-",
        ]


KERNEL_HEADER = [
    "model",
    "kernel",
    "result",
    "calls",
    "ms",
    "share",
    "GFLOP/s",
    "GB/s",
    "of the limit",
    "bound by",
]
OPERATOR_HEADER = [
    "operator",
    "models",
    "count",
    "µs",
    "ONNX Runtime µs",
    "GFLOP/s",
    "GB/s",
    "of the limit",
    "ONNX Runtime / ours",
]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *["| " + " | ".join(row) + " |" for row in rows]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser, rounds=9)
    parser.add_argument(
        "--share", type=float, default=0.01, help="kernels with less of a model's time are left out"
    )
    parser.add_argument("--without", choices=("kernels", "operators"), help="leave out one of the two tables")
    parser.add_argument("--output", type=Path)
    add_option(parser)
    parser.add_argument("--limits", help="GFLOP/s,GB/s of the machine, not to measure them")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads)
        return
    start_again(options.isa)
    options.output = options.output or beside(HERE / "results" / "ops.md", options.isa)
    os.environ.update(thread_environment(options.threads))

    from limits import limits_from

    limits = limits_from(options.limits, options.threads)
    profiles, measured, notes = {}, [], []
    with tempfile.TemporaryDirectory(prefix="tilewright-ops-") as place:
        for name in chosen(options.only, list(FAMILIES), "model"):
            try:
                folder = exported(name, options.models)
                if options.without != "kernels":
                    profiles[name] = kernel_profile(folder, options.rounds)
                if options.without != "operators":
                    measured += new_operators(name, folder, Path(place) / name, measured)
            except Exception as error:  # noqa: BLE001 - a model that fails is a note under the table
                notes.append(f"- {name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
            say(f"{name} is read")
            limits = limits.best_of(limits_from(options.limits, options.threads))
        if measured:
            time_operators(measured, ("tilewright", "onnxruntime"), options.rounds, options.threads)
    write(options, limits.best_of(limits_from(options.limits, options.threads)), profiles, measured, notes)


def new_operators(name: str, folder: Path, scratch: Path, known: Sequence[Measured]) -> list[Measured]:
    """The operators of a model; those that an earlier model has, too, are only noted there."""
    by_name = {one.operator.name: one for one in known}
    found = []
    for operator in distinct_operators(folder / "model.onnx", scratch):
        earlier = by_name.get(operator.name)
        if earlier is None:
            found.append(Measured(operator, [name]))
        elif name not in earlier.models:
            earlier.models.append(name)
    return found


def write(options: Any, limits: Any, profiles: Any, measured: Sequence[Measured], notes: list[str]) -> None:
    """The tables, with the machine's limits as they were found at the best moment."""
    levels = ", ".join(f"{one.level} {one.bytes_per_second / 1e9:.0f}" for one in limits.bandwidths)
    about = (
        f"{limits.threads} threads; FMA peak {limits.flops_per_second / 1e9:.0f} GFLOP/s, GB/s read: {levels}. "
        "The limit of a kernel is the longer of its operations at the peak and its bytes from the smallest level that "
        f"holds them. Kernels with less than {options.share:.0%} of their model's time are left out. "
        f"Load average at the end: {os.getloadavg()[0]:.1f}."
    )
    rows: list[list[str]] = []
    for name, profile in profiles.items():
        rows += kernel_rows(name, replace(profile, limits=limits), options.share)
    parts = [about]
    if measured:
        title = (
            "## Single operators\n\nWhere most time is lost against ONNX Runtime (times the count) is first."
        )
        parts += [title, table(OPERATOR_HEADER, list(operator_rows(measured, limits)))]
    if notes:
        parts.append("Not measured:\n\n" + "\n".join(notes))
    write_table(options.output, "Kernels and operators", KERNEL_HEADER, rows, "\n\n".join(parts))


if __name__ == "__main__":
    main()
