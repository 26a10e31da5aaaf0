"""What tuning gains, how fast it goes, and what it survives.

Run it:  python bench/tuning.py [--only models,operators,naive,throughput,kills] [--seconds 300] [--operator-seconds 60]

Parts that are not run keep their figures in bench/results/tuning.md, which is written anew from
bench/results/tuning.json. Every figure is of a machine that nothing else uses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import machine  # noqa: E402

from tilewright.support.options import cache_dir  # noqa: E402

RESULTS = HERE / "results" / "tuning.json"
MODELS = ("resnet18", "mobilenet_v2", "bert_base")


def geometric_mean(values: Sequence[float]) -> float:
    """Of gains."""
    return math.exp(sum(map(math.log, values)) / len(values))


def model_file(name: str) -> Path:
    """A model of the latency bench, exported when it is first asked for."""
    from latency import exported

    return exported(name, cache_dir() / "bench") / "model.onnx"


def tune_models(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Each model tuned from nothing within a time, then compared once more in a process of its own."""
    rows = []
    for name in options.models.split(","):
        path = model_file(name)
        with tempfile.TemporaryDirectory() as folder:
            records = Path(folder) / "records.json"
            command = [sys.executable, "-m", "tilewright", "tune", str(path), "-o", str(records), "--json"]
            ran = subprocess.run(
                [*command, "--time", f"{options.seconds}s"], capture_output=True, text=True, check=True
            )
            found = json.loads(ran.stdout)
            untuned, tuned = confirm_model(path, records)
        rows.append(
            {
                "name": name,
                "seconds": found["seconds"],
                "trials": found["trials"],
                "failures": found["failures"],
                "tasks": len(found["tasks"]),
                "improved": found["improved"],
                "untuned": untuned,
                "tuned": tuned,
            }
        )
        print(rows[-1], flush=True)
    return rows


def confirm_model(path: Path, records: Path, rounds: int = 15) -> tuple[float, float]:
    """Seconds of a run, untuned and tuned, from packages in processes that take turns."""
    with tempfile.TemporaryDirectory() as folder:
        times: dict[str, list[float]] = {"untuned": [], "tuned": []}
        packages = {}
        for name, more in (("untuned", []), ("tuned", ["--tuning-records", str(records)])):
            packages[name] = str(Path(folder) / f"{name}.tar")
            command = [sys.executable, "-m", "tilewright", "compile", str(path), "-f", "tar"]
            subprocess.run([*command, "-o", packages[name], *more], check=True, stdout=subprocess.DEVNULL)
        from tilewright.driver import tvmc

        runnables = {}
        for name, package in packages.items():
            loaded = tvmc.TVMCPackage(package)
            runnables[name] = tvmc.runner.make_runnable(loaded)
            runnables[name].set_inputs(tvmc.runner.complete_inputs(loaded.content.inputs, {}, "random"))
        for number in range(rounds):
            for name in times if number % 2 else reversed(times):
                times[name].append(runnables[name].benchmark(1, 5).mean)
    return median(times["untuned"]), median(times["tuned"])


def tune_operators(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Each operator of the list tuned within a time, and compared with its constructed schedule at the end."""
    from odd_operators import OPERATORS

    import tilewright as tvm
    from tilewright.search.kernel_task import expression_task
    from tilewright.search.kernel_tuner import KernelTuner, TuneOptions
    from tilewright.search.measure import RunOptions, build_all, run_all
    from tilewright.search.records import RecordFile

    target = tvm.target.Target("llvm")
    rows = []
    for name, make in OPERATORS.items():
        if options.operator and options.operator not in name:
            continue
        arguments = make()
        task = expression_task("kernel", arguments, [arguments[-1]], target)
        with tempfile.TemporaryDirectory() as folder:
            file = RecordFile(Path(folder) / "records.json")
            tuner = KernelTuner([task], file, TuneOptions(seconds=options.operator_seconds))
            tuner.tune()
        built = build_all([task.job(task.search.best)])
        again = RunOptions(number=1, repeat=15, min_repeat_ms=10, outputs=1)
        (measured,) = run_all(built, task.arguments, again, task.incumbent)
        # What does not prove faster is not applied.
        gain = max(measured.gain, 1.0) if task.gain > 1 else 1.0
        choices = {
            one: value for one, value in task.search.best if value != task.search.space[one].constructed
        }
        rows.append(
            {
                "name": name,
                "untuned": task.untuned,
                "gain": gain,
                "trials": tuner.trials,
                "failures": tuner.failures,
                "choices": choices,
            }
        )
        print(rows[-1], flush=True)
    return rows


def naive_expressions() -> dict[str, Callable[[], list[Any]]]:
    """Expressions without any schedule, as one would write them first."""
    from odd_operators import attention, convolution, product, softmax

    return {
        "product 512x512x512": lambda: product(512, 512, 512),
        "conv2d 64x56x56 to 64, 3x3": lambda: convolution(64, 56, 64, (3, 3), pad=1),
        "softmax 512x1024": lambda: softmax(512, 1024),
        "attention, 8 heads of 65 tokens": attention,
    }


def state_task(arguments: list[Any], target: Any) -> Any:
    """AutoScheduler's task of an expression."""
    from tilewright.auto_scheduler.compute_dag import ComputeDAG
    from tilewright.auto_scheduler.search_task import SearchTask
    from tilewright.auto_scheduler.workload_registry import register_workload_tensors

    dag = ComputeDAG(arguments)
    key = dag.workload_key()
    register_workload_tensors(key, dag.tensors)
    return SearchTask(compute_dag=dag, workload_key=key, target=target)


def tune_naive(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Each expression given to AutoScheduler for a time, against the schedule that hand-written rules construct."""
    import tilewright as tvm
    from tilewright.driver.tuning.states import StateTask, StateTuner
    from tilewright.search.kernel_tuner import TuneOptions

    target = tvm.target.Target("llvm")
    rows = []
    for name, make in naive_expressions().items():
        if options.operator and options.operator not in name:
            continue
        task = StateTask(state_task(make(), target), 1)
        with tempfile.TemporaryDirectory() as folder:
            records = str(Path(folder) / "states.json")
            tuner = StateTuner([task], records, TuneOptions(seconds=options.naive_seconds))
            tuner.tune()
        rows.append(
            {
                "name": name,
                "seconds": tuner.seconds,
                "trials": tuner.trials,
                "failures": tuner.failures,
                "hand": task.untuned,
                "found": task.known.best_cost,
            }
        )
        print(rows[-1], flush=True)
    return rows


def measure_throughput(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Candidates of a 256-cubed product a minute: lowered and ranked, and compiled and measured."""
    from odd_operators import product

    import tilewright as tvm
    from tilewright.search.kernel_task import expression_task
    from tilewright.search.measure import RunOptions, build_all, run_all

    target = tvm.target.Target("llvm")
    arguments = product(256, 256, 256)
    task = expression_task("kernel", arguments, [arguments[-1]], target)
    proposed = task.search.propose(200)
    ranked = rank_states(arguments, target)
    starts = time.monotonic()
    measured = 0
    for first in range(0, 160, 16):
        chosen = proposed[first : first + 16]
        built = build_all([task.job(one) for one in chosen])
        found = run_all(built, task.arguments, RunOptions(number=1, repeat=3, min_repeat_ms=2))
        measured += sum(one.is_good for one in found)
    spent = time.monotonic() - starts
    rows = [
        {"name": "lowered and ranked", "a minute": ranked, "wanted": 1000},
        {"name": "compiled and measured", "a minute": measured / spent * 60, "wanted": 500},
    ]
    print(rows, flush=True)
    return rows


def rank_states(arguments: list[Any], target: Any, count: int = 300) -> float:
    """States of a population a minute that are lowered, described by features and ranked by trees."""
    from tilewright.auto_scheduler.cost_model import XGBModel
    from tilewright.auto_scheduler.measure_types import MeasureErrorNo, MeasureInput, MeasureResult
    from tilewright.auto_scheduler.search_policy import SketchPolicy

    task = state_task(arguments, target)
    states: list[Any] = []
    for seed in range(20):
        if len(states) < count:
            states += SketchPolicy(task, seed=seed, verbose=0).sample_initial_population()
    states = states[:count]
    model = XGBModel(num_warmup_sample=1)
    few = states[:32]
    results = [
        MeasureResult([1e-3 * (1 + place)], MeasureErrorNo.NO_ERROR, "", 0.1, 0.0)
        for place, _ in enumerate(few)
    ]
    model.update([MeasureInput(task, state) for state in few], results)
    starts = time.monotonic()
    model.predict(task, states)
    return len(states) / (time.monotonic() - starts) * 60


def kill_runs(options: argparse.Namespace) -> list[dict[str, Any]]:
    """``tilewright tune`` killed at random moments; what it said was measured must be there, and the cache whole."""
    from tilewright.compile import Unit
    from tilewright.search.kernel_records import KernelRecord
    from tilewright.search.records import RecordFile
    from tilewright.support.errors import TilewrightError

    path = model_file("dqn")
    generator = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        file = RecordFile(Path(folder) / "records.json")
        units = Path(folder) / "cache"
        environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(units)}
        before: list[str] = []
        lost = damaged = 0
        for _ in range(options.kills):
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tilewright",
                    "tune",
                    str(path),
                    "--time",
                    "10m",
                    "-o",
                    str(file.path),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            time.sleep(generator.uniform(1, 20))
            process.send_signal(signal.SIGKILL)
            process.wait()
            now = [line.text for line in file.lines()]
            lost += now[: len(before)] != before
            before = now
        loaded = file.read(KernelRecord.from_json)
        for unit in units.rglob("*.unit"):
            try:
                Unit.from_bytes(unit.read_bytes())
            except (TilewrightError, ValueError):
                damaged += 1
    row = {
        "name": f"{options.kills} kills",
        "records": len(loaded.records),
        "half-written lines": len(loaded.problems),
        "lost records": lost,
        "damaged cache entries": damaged,
    }
    print(row, flush=True)
    return [row]


PARTS: Mapping[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "models": tune_models,
    "operators": tune_operators,
    "naive": tune_naive,
    "throughput": measure_throughput,
    "kills": kill_runs,
}


def main() -> None:
    """Run parts, and write the results of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seconds", type=int, default=300, help="for each model")
    parser.add_argument("--operator-seconds", type=int, default=60, help="for each operator")
    parser.add_argument(
        "--naive-seconds", type=int, default=120, help="for each expression without a schedule"
    )
    parser.add_argument("--operator", help="only operators whose name contains this")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in options.only.split(","):
        results[part] = PARTS[part](options)
        if not options.no_write:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            RESULTS.with_suffix(".md").write_text(report(results))


def report(results: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = ["# Tuning", "", "```json", json.dumps(machine(), indent=1), "```", ""]
    for part, describe in (
        ("models", describe_models),
        ("operators", describe_operators),
        ("naive", describe_naive),
        ("throughput", describe_throughput),
        ("kills", describe_kills),
    ):
        if results.get(part):
            lines += describe(results[part])
            # What was measured elsewhere, or otherwise than the rest, says so.
            lines += [note, ""] if (note := results.get("notes", {}).get(part)) else []
    return "\n".join(lines).rstrip() + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, and an empty line."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def describe_models(rows: list[dict[str, Any]]) -> list[str]:
    """Models tuned from nothing."""
    cells = [
        [
            row["name"],
            f"{row['seconds']:.0f}",
            str(row["trials"]),
            str(row["failures"]),
            f"{row['improved']} of {row['tasks']}",
            f"{row['untuned'] * 1e3:.2f}",
            f"{row['tuned'] * 1e3:.2f}",
            f"{100 * (row['untuned'] / row['tuned'] - 1):+.1f} %",
        ]
        for row in rows
    ]
    head = ["model", "seconds", "trials", "failed", "tasks improved", "untuned, ms", "tuned, ms", "gain"]
    return [
        "## Models, tuned from nothing",
        "",
        "The times are those of a confirming run: two packages that take turns.",
        "",
        *table(head, cells),
    ]


def describe_operators(rows: list[dict[str, Any]]) -> list[str]:
    """Single operators."""
    cells = [
        [
            row["name"],
            f"{row['untuned'] * 1e6:.1f}",
            f"{row['gain']:.2f}",
            str(row["trials"]),
            str(row["failures"]),
            ", ".join(f"{name} {value}" for name, value in row["choices"].items()),
        ]
        for row in rows
    ]
    mean = geometric_mean([row["gain"] for row in rows])
    head = ["operator", "constructed, µs", "gain", "trials", "failed", "choices that changed"]
    return [
        "## Single operators, over their constructed schedules",
        "",
        f"The geometric mean of the gains is **{mean:.3f}**.",
        "",
        *table(head, cells),
    ]


def describe_naive(rows: list[dict[str, Any]]) -> list[str]:
    """Expressions without any schedule."""
    cells = [
        [row["name"], f"{row['seconds']:.0f}", f"{row['hand'] * 1e6:.1f}", f"{row['found'] * 1e6:.1f}"]
        + [f"{100 * row['hand'] / row['found']:.0f} %"]
        for row in rows
    ]
    head = ["expression", "seconds", "hand-made schedule, µs", "found, µs", "speed of it"]
    return ["## Expressions without a schedule, given to AutoScheduler", "", *table(head, cells)]


def describe_throughput(rows: list[dict[str, Any]]) -> list[str]:
    """Candidates a minute."""
    cells = [[row["name"], f"{row['a minute']:.0f}", str(row["wanted"])] for row in rows]
    return ["## Candidates of a 256-cubed product", "", *table(["", "a minute", "wanted"], cells)]


def describe_kills(rows: list[dict[str, Any]]) -> list[str]:
    """What kill -9 costs."""
    head = [name for name in rows[0] if name != "name"]
    cells = [[row["name"], *(str(row[name]) for name in head)] for row in rows]
    return ["## kill -9 at random moments", "", *table(["", *head], cells)]


if __name__ == "__main__":
    main()
