"""``torch.compile(backend="tilewright")`` against the same model through ONNX, and against inductor.

Run it:  python bench/torch_compile.py [--only resnet18,bert_base] [--contenders compile,onnx,inductor] [--rounds 9]

The models are those of bench/latency.py: batch 1, float32, two threads, or one where there is one core. Every contender
has a process of its own, their rounds alternate, and medians are compared. The compile time is that of the first call,
with empty caches; for ONNX it is that of reading and building. Inductor may take the weights for constants, as the
others do, and both backends have ``torch._dynamo.config.allow_rnn``. Results are appended to
bench/results/torch_compile.jsonl, of which the latest of each model count: models can be measured in several runs.
Writes bench/results/torch_compile.md.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import PAUSE, add_model_options, finish, thread_environment, timed, write_table  # noqa: E402
from latency import Failed, exported  # noqa: E402
from models import FAMILIES  # noqa: E402

CONTENDERS = {"compile": "torch.compile", "onnx": "through ONNX", "inductor": "inductor"}
TOLERANCE = 1e-3


def prepared(contender: str, name: str, folder: Path) -> tuple[float, Callable[[], Any], Callable[[], Any]]:
    """The seconds of compilation, a call, and its outputs."""
    import torch
    from models.export import made

    # Without it TorchDynamo leaves functions with recurrent layers to eager PyTorch, whatever the backend.
    torch._dynamo.config.allow_rnn = True
    model, inputs, _ = made(name)
    values = tuple(inputs.values())
    if contender == "onnx":
        return through_onnx(folder, inputs)
    if contender == "inductor":
        import torch._inductor.config as config

        config.freezing = True
        compiled = torch.compile(model)
    else:
        from tilewright.driver.torch_backend import tilewright

        compiled = torch.compile(model, backend=tilewright, options={"fallback": False})

    @torch.no_grad()
    def call() -> Any:
        return compiled(*values)

    # What is loaded once in a process is not a part of compiling a model.
    torch.compile(lambda x: x + 1, backend="eager")(values[0])
    started = time.perf_counter()
    call()
    seconds = time.perf_counter() - started
    return seconds, call, lambda: _flat(call())


def through_onnx(folder: Path, inputs: dict[str, Any]) -> tuple[float, Callable[[], Any], Callable[[], Any]]:
    """The model's ONNX file, built and run by the graph executor or, with a loop, by the virtual machine."""
    import tilewright as tvm
    from tilewright import relay
    from tilewright.support.errors import LoweringError

    started = time.perf_counter()
    module, params = relay.frontend.from_onnx(str(folder / "model.onnx"), freeze_params=True)
    values = {name: tvm.nd.array(value.numpy()) for name, value in inputs.items()}
    with tvm.transform.PassContext(opt_level=3):
        try:
            library = relay.build(module, target="llvm", params=params)
        except LoweringError as error:
            if "virtual machine" not in str(error):
                raise
            started = time.perf_counter()
            program = relay.vm.compile(module, target="llvm", params=params)
            machine = tvm.runtime.vm.VirtualMachine(program, tvm.cpu(0))
            seconds = time.perf_counter() - started
            machine.set_input("main", **values)
            call = lambda: machine.invoke_stateful("main")
            return seconds, call, lambda: [one.numpy() for one in machine.get_outputs()]
    executor = library["default"](tvm.cpu(0))
    seconds = time.perf_counter() - started
    for name, value in values.items():
        executor.set_input(name, value)
    outputs = range(executor.get_num_outputs())
    return seconds, executor.run, lambda: [executor.get_output(place).numpy() for place in outputs]


def _flat(values: Any) -> list[Any]:
    import torch

    return [one.numpy() for one in torch.utils._pytree.tree_leaves(values)]


def serve(contender: str, name: str, folder: Path, threads: int) -> None:
    """A contender's process: its compile time and how far its outputs are from eager's, then a time for each line."""
    import numpy as np
    import torch
    from models.export import made

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_num_threads(threads)
    seconds, call, outputs = prepared(contender, name, folder)
    call()
    model, inputs, _ = made(name)
    with torch.no_grad():
        expected = _flat(model(*inputs.values()))
    found = outputs()
    worst = max(
        float(np.abs(have.reshape(want.shape) - want).max()) / max(float(np.abs(want).max()), 1e-9)
        for have, want in zip(found, expected, strict=False)
    )
    answers.write(json.dumps({"compile": seconds, "difference": worst}) + "\n")
    run = timed(call)
    for _ in sys.stdin:
        answers.write(json.dumps(run()) + "\n")


class Runner:
    """The other end of a contender's process."""

    def __init__(self, contender: str, name: str, folder: Path, threads: int, scratch: str) -> None:
        environment = thread_environment(threads) | {"TILEWRIGHT_NO_CACHE": "1"}
        environment |= {"TORCHINDUCTOR_CACHE_DIR": scratch, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        program = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            "--serve",
            contender,
            name,
            str(folder),
            str(threads),
        ]
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.times: list[float] = []
        try:
            answer = json.loads(self.line())
        except Failed:
            self.end()
            raise
        self.compiled, self.difference = float(answer["compile"]), float(answer["difference"])

    def line(self) -> str:
        assert self.process.stdout is not None and self.process.stderr is not None
        found = self.process.stdout.readline()
        if not found:
            lines = [line for line in self.process.stderr.read().splitlines() if line.strip()]
            raise Failed(lines[-1][:200] if lines else "no reason given")
        return found

    def round(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.times.append(float(json.loads(self.line())))

    def end(self) -> None:
        finish(self.process)


def measured(name: str, folder: Path, contenders: list[str], rounds: int, threads: int) -> dict[str, Any]:
    """For each contender the seconds of a call and of compilation, or why there are none."""
    found: dict[str, Any] = {}
    runners: dict[str, Runner] = {}
    with tempfile.TemporaryDirectory(prefix="tilewright-inductor-") as scratch:
        try:
            for contender in contenders:
                try:
                    runners[contender] = Runner(contender, name, folder, threads, scratch)
                    if runners[contender].difference > TOLERANCE:
                        raise Failed(f"outputs differ by {runners[contender].difference:.1e}")
                except Failed as failed:
                    found[contender] = str(failed)
                    if contender in runners:
                        runners.pop(contender).end()
            for number in range(rounds):
                order = list(runners.values())
                for runner in order if number % 2 == 0 else reversed(order):
                    time.sleep(PAUSE)
                    runner.round()
        finally:
            for runner in runners.values():
                runner.end()
    for contender, runner in runners.items():
        found[contender] = [statistics.median(runner.times), runner.compiled]
    return found


def cell(entry: Any) -> str:
    if isinstance(entry, str):
        return entry.replace("|", "/")
    return f"{entry[0] * 1e3:.2f} ms, {entry[1]:.1f} s"


def ratio(entries: dict[str, Any], over: str, under: str, place: int) -> float:
    """How many times as long ``over`` takes; not a number where one of them failed."""
    one, other = entries.get(over), entries.get(under)
    return one[place] / other[place] if isinstance(one, list) and isinstance(other, list) else math.nan


def mean(values: list[float]) -> str:
    kept = [value for value in values if math.isfinite(value)]
    return f"{statistics.geometric_mean(kept):.2f}" if kept else "-"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser, rounds=9)
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--output", type=Path, default=HERE / "results" / "torch_compile.md")
    parser.add_argument("--records", type=Path, default=HERE / "results" / "torch_compile.jsonl")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        contender, name, folder, threads = options.serve
        serve(contender, name, Path(folder), int(threads))
        return
    names = options.only.split(",") if options.only else list(FAMILIES)
    contenders = options.contenders.split(",")
    for name in names:
        found = measured(name, exported(name, options.models), contenders, options.rounds, options.threads)
        print(name, {each: cell(entry) for each, entry in found.items()}, file=sys.stderr, flush=True)
        with options.records.open("a") as file:
            facts = {"model": name, "rounds": options.rounds, "threads": options.threads}
            file.write(json.dumps({**facts, **found}) + "\n")
        report(options.output, records(options.records))


def records(path: Path) -> dict[str, dict[str, Any]]:
    """What each model's latest run found, in the order of the models."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    latest = {line["model"]: line for line in lines}
    return {name: latest[name] for name in FAMILIES if name in latest}


def report(output: Path, results: dict[str, dict[str, Any]]) -> None:
    ratios = {
        "of ONNX": [ratio(entries, "compile", "onnx", 0) for entries in results.values()],
        "inductor's": [ratio(entries, "inductor", "compile", 0) for entries in results.values()],
        "compile time of inductor's": [
            ratio(entries, "compile", "inductor", 1) for entries in results.values()
        ],
    }
    rows = [
        [
            name,
            *(cell(entries.get(contender, "-")) for contender in CONTENDERS),
            *(f"{values[place]:.2f}" for values in ratios.values()),
        ]
        for place, (name, entries) in enumerate(results.items())
    ]
    rows.append(["geometric mean", *("" for _ in CONTENDERS), *(mean(values) for values in ratios.values())])
    header = ["model", *CONTENDERS.values()]
    header += ["time / time through ONNX", "inductor's time / time", "compile time / inductor's"]
    notes = "Each cell: the median time of a call, and the time of compilation. The first ratio should be at most "
    notes += "1.05, the second at least 1.5 in the mean, the third at most 1. Rounds: "
    notes += ", ".join(f"{name} {entries['rounds']}" for name, entries in results.items()) + ". Threads: "
    threads = {entries["threads"] for entries in results.values()}
    if len(threads) == 1:
        notes += f"{threads.pop()}."
    else:
        notes += ", ".join(f"{name} {entries['threads']}" for name, entries in results.items()) + "."
    write_table(output, 'torch.compile(backend="tilewright")', header, rows, notes)


if __name__ == "__main__":
    main()
