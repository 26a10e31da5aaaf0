"""Latency of whole models: Tilewright against the runtimes that one would use instead.

Run it:  python bench/latency.py [--only resnet50,vgg16] [--contenders tilewright,onnxruntime] [--rounds 15]
         python bench/latency.py --isa avx2

Writes bench/results/latency.md and latency.svg, or latency_avx2.md and .svg. Batch 1, float32, two threads, no tuning.
Every contender has a separate process, their rounds alternate, and medians are compared. A contender's outputs must
agree with those of ONNX Runtime before its times count. Failures are reported in the table and do not stop the run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from contenders import CONTENDERS, installed  # noqa: E402
from harness import PAUSE, add_model_options, finish, thread_environment  # noqa: E402
from isa import add_option, beside, isa_environment, start_again  # noqa: E402
from latency_report import write_report  # noqa: E402
from limits import limits_from  # noqa: E402
from models import FAMILIES  # noqa: E402

REFERENCE = "onnxruntime"
TOLERANCE = 1e-3
"""The largest difference from the reference's outputs, as a part of the largest value there."""

PATIENCE = 600.0
"""Seconds that a contender may take to get ready."""


class Failed(Exception):
    """A contender that cannot take part, and why."""


@dataclass
class Entry:
    """The results of one contender on one model."""

    seconds: float | None = None
    failure: str = ""
    error: float | None = None
    compiled: float | None = None
    memory: int | None = None


@dataclass
class Row:
    """A model: what it takes at least, and what each contender makes of it."""

    name: str
    operations: int = 0
    bytes: int = 0
    limit: float = 0.0
    failure: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)


class Child:
    """A contender's process: lines of JSON come out of it, and a line sent to it starts a round."""

    def __init__(
        self, name: str, folder: Path, scratch: Path, threads: int, *more: str, limited: bool = True
    ) -> None:
        """``limited``: it sees no more features of the CPU than this process; see isa.py."""
        self.name = name
        self.log = scratch / f"{name}.log"
        arguments = [str(HERE / "contenders.py"), name, str(folder), str(scratch), str(threads), *more]
        # Compiled code of earlier runs is not found, so that compile times are those of the first time.
        environment = thread_environment(threads) | {"TILEWRIGHT_NO_CACHE": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **environment, **(isa_environment() if limited else {})},
            )

    def answer(self) -> Any:
        """The next line, or the reason that none comes."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        if not ready:
            raise Failed(f"no answer for {PATIENCE:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(self.reason())
        return json.loads(line)

    def reason(self) -> str:
        """The last line that it wrote before it ended."""
        code = self.process.wait(timeout=60)
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        last = lines[-1].strip() if lines else ""
        return f"{last[:200]} (exit {code})" if code < 0 or not last else last[:200]

    def round(self) -> float:
        """The seconds of one call."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError as broken:
            raise Failed(self.reason()) from broken
        return float(self.answer())

    def end(self) -> None:
        """Let it finish, and wait until it has."""
        finish(self.process)


@contextmanager
def child(*arguments: Any, limited: bool = True) -> Iterator[Child]:
    """A process that ends with the block."""
    made = Child(*arguments, limited=limited)
    try:
        yield made
    finally:
        made.end()


def folder_of(name: str, cache: Path) -> Path:
    """Where a model's files are: another folder when the definition has changed."""
    definitions = [HERE / "models" / f"{part}.py" for part in (FAMILIES[name], "recipe", "export")]
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in definitions)).hexdigest()[:12]
    return cache / f"{name}-{mark}"


def exported(name: str, cache: Path) -> Path:
    """The folder of a model's files, which are made where they are missing."""
    return made_once(folder_of(name, cache), "export.py", name)


def made_once(folder: Path, script: str, name: str) -> Path:
    """The folder, which a script of ``models`` fills if it is not there yet."""
    if (folder / "about.json").exists():
        return folder
    draft = folder.with_name(f"{folder.name}-{os.getpid()}.draft")
    draft.mkdir(parents=True)
    program = [sys.executable, "-W", "ignore", str(HERE / "models" / script), name, str(draft)]
    try:
        finished = subprocess.run(program, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise Failed("export: " + (finished.stderr.strip().splitlines() or ["no reason given"])[-1][:200])
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def arrays(path: Path) -> list[Any]:
    """The outputs that a contender wrote."""
    with np.load(path) as found:
        return [found[key] for key in found.files]


def difference(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference of all outputs, each as a part of its largest expected value."""
    if len(found) != len(expected):
        raise Failed(f"{len(found)} outputs instead of {len(expected)}")
    worst = 0.0
    for have, want in zip(found, expected, strict=True):
        if have.size != want.size:
            raise Failed(f"an output of shape {have.shape} instead of {want.shape}")
        wanted = want.astype("float64").ravel()
        distance = np.abs(have.astype("float64").ravel() - wanted).max()
        if not np.isfinite(distance):
            raise Failed("an output is not finite")
        worst = max(worst, float(distance) / max(float(np.abs(wanted).max()), 1e-9))
    return worst


def prepared(name: str, folder: Path, scratch: Path, threads: int, entry: Entry) -> Child:
    """A contender that is ready and whose outputs are right."""
    if not installed(name):
        raise Failed("not installed")
    if CONTENDERS[name].compile is not None:
        with child(name, folder, scratch, threads, "compile") as compiler:
            entry.compiled = float(compiler.answer()["compile"])
    runner = Child(name, folder, scratch, threads)
    try:
        entry.memory = runner.answer()["memory"]
        entry.error = difference(arrays(scratch / f"{name}.npz"), arrays(scratch / f"{REFERENCE}.npz"))
        if entry.error > TOLERANCE:
            raise Failed(f"outputs differ by {entry.error:.1e}")
    except Failed:
        runner.end()
        raise
    return runner


def measure(row: Row, folder: Path, names: Sequence[str], rounds: int, threads: int) -> None:
    """Fill in a row of the table: prepare every contender, then alternate their rounds."""
    running: list[Child] = []
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="tilewright-latency-") as place:
        scratch = Path(place)
        try:
            # The reference is first: the others' outputs are compared with its own.
            for name in sorted(names, key=lambda one: one != REFERENCE):
                entry = row.entries[name] = Entry()
                try:
                    running.append(prepared(name, folder, scratch, threads, entry))
                    say(f"{row.name}: {name} is ready")
                except Failed as failed:
                    entry.failure = str(failed)
                    say(f"{row.name}: {name}: {failed}")
            for number in range(rounds):
                for runner in list(running if number % 2 == 0 else reversed(running)):
                    time.sleep(PAUSE)
                    try:
                        times.setdefault(runner.name, []).append(runner.round())
                    except Failed as failed:
                        row.entries[runner.name].failure = str(failed)
                        running.remove(runner)
        finally:
            for runner in running:
                runner.end()
    for name, values in times.items():
        if not row.entries[name].failure:
            row.entries[name].seconds = statistics.median(values)


def say(text: str) -> None:
    """Progress messages, separate from the table."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Names from an option, in the known order."""
    if text is None:
        return list(known)
    wanted = text.split(",")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"no {what} is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [name for name in known if name in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser, rounds=15)
    parser.add_argument("--contenders", help="runtimes, with commas between them; the reference always runs")
    parser.add_argument("--output", type=Path)
    add_option(parser)
    parser.add_argument("--limits", help="GFLOP/s,GB/s of the machine, not to measure them")
    options = parser.parse_args()
    start_again(options.isa)
    output = options.output or beside(HERE / "results" / "latency.md", options.isa)
    models = chosen(options.only, list(FAMILIES), "model")
    names = chosen(options.contenders, list(CONTENDERS), "contender")
    if REFERENCE not in names:
        names.insert(0, REFERENCE)

    limits = limits_from(options.limits, options.threads)
    rows = []
    for name in models:
        row = Row(name)
        rows.append(row)
        try:
            folder = exported(name, options.models)
        except Failed as failed:
            row.failure = str(failed)
            say(f"{name}: {failed}")
            continue
        about = json.loads((folder / "about.json").read_text())
        row.operations, row.bytes = about["operations"], about["bytes"]
        measure(row, folder, names, options.rounds, options.threads)
        # After each model, so that a run that is broken off leaves what it has.
        limits = limits.best_of(limits_from(options.limits, options.threads))
        for one in rows:
            one.limit = limits.least_seconds(one.operations, one.bytes)
        write_report(output, rows, names, limits, options.rounds)
    if not any(math.isfinite(entry.seconds or math.nan) for row in rows for entry in row.entries.values()):
        raise SystemExit("nothing could be measured")


if __name__ == "__main__":
    main()
