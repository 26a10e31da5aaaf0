"""Fair timing on a shared machine: every contender in its own process, alternating rounds, medians compared.

A contender is a program that prepares, prints a line, and then for each line that it reads runs once and prints the
seconds that one call took. The rounds of all contenders of a group alternate, so that other load on the machine affects
all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isa import isa_environment, limit

PAUSE = 0.4
"""Seconds between rounds: threads of BLAS and OpenMP spin for a while after a call, on the next contender's core."""

WARM_UP = 0.25
"""Seconds of untimed calls at the start of a round: a core that has slept takes up to 0.2 s to its full speed."""


CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
"""Where exported models are kept between runs."""


def add_model_options(parser: argparse.ArgumentParser, rounds: int) -> None:
    """The options of benchmarks that run models in rounds."""
    parser.add_argument("--only", help="models, with commas between them")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--models", type=Path, default=CACHE, help="folder for exported models")


def finish(process: subprocess.Popen[str]) -> None:
    """Close the input of a process that reads lines, and wait until it has ended."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Contender:
    """A name, and the arguments and environment of its process."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def thread_environment(threads: int) -> dict[str, str]:
    """The variables by which every runtime that we compare with learns its number of threads."""
    value = str(threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TILEWRIGHT_NUM_THREADS")
    return {name: value for name in names}


def serve(prepare: Callable[[], Callable[[], float]]) -> None:
    """The contender's side: prepare, then one timed run for each line read."""
    run = prepare()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(repr(run()), flush=True)


SAMPLES = 5
"""Times that a round takes; their median counts, so that one that the machine was away in does not."""


def timed(
    call: Callable[[], object], least_seconds: float = 0.02, warm_up: float = WARM_UP
) -> Callable[[], float]:
    """A run that calls often enough to last a while, several times, and gives the median seconds of one call."""
    call()
    started = time.perf_counter()
    call()
    once = max(time.perf_counter() - started, 1e-7)
    number = max(1, round(least_seconds / once))

    def run() -> float:
        # Wakes the threads, the cores they sleep on, and the caches: a round is about the steady state.
        woken = time.perf_counter() + warm_up
        while time.perf_counter() < woken:
            call()
        return statistics.median(sample() for _ in range(SAMPLES))

    def sample() -> float:
        begun = time.perf_counter()
        for _ in range(number):
            call()
        return (time.perf_counter() - begun) / number

    return run


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, float]:
    """The median seconds of each contender over alternating rounds."""
    processes = [
        subprocess.Popen(
            [sys.executable, *contender.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **contender.environment, **isa_environment()},
        )
        for contender in contenders
    ]
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    try:
        for process, contender in zip(processes, contenders, strict=True):
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"contender {contender.name} did not get ready")
        for number in range(rounds):
            order = list(zip(processes, contenders, strict=True))
            for process, contender in order if number % 2 == 0 else reversed(order):
                assert process.stdin is not None and process.stdout is not None
                time.sleep(PAUSE)
                process.stdin.write("go\n")
                process.stdin.flush()
                times[contender.name].append(float(process.stdout.readline()))
    finally:
        for process in processes:
            finish(process)
    return {name: statistics.median(values) for name, values in times.items()}


def machine() -> dict[str, object]:
    """The machine that the figures were measured on, without its name."""
    model, flags = "unknown", ""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        if key.strip() == "flags":
            flags = value
    wanted: tuple[str, ...] = ("avx2", "fma")
    if limit() != "avx2":
        wanted += ("avx_vnni",)
    if limit() == "native":
        wanted += ("avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
    return {
        "processor": model,
        "features": [name for name in wanted if f" {name} " in f"{flags} "],
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def write_table(
    path: Path, title: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: str = ""
) -> None:
    """A Markdown table with the machine's description, written to a temporary name and renamed."""
    lines = [f"# {title}", "", "```json", json.dumps(machine(), indent=1), "```", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    text = "\n".join([*lines, "", notes, ""]).rstrip() + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)
    print(text)
