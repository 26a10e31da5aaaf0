"""The zoo: models of torchvision, timm and transformers through every door that PyTorch models come in by.

Run it:  python bench/zoo.py [--source torchvision,timm,transformers] [--doors export,compile,script,onnx]
                             [--through code|quick|reference] [--only resnet,swin] [--again] [--limit 300]
                             [--jobs 1]

Every model has a process of its own, with limits of time and memory, and goes through the doors in it; after a crash or
at the limit of time the next door has another. Results are appended to bench/results/zoo.jsonl, so that a run can be
broken off and continued: what is in the file is not run again, unless it was only interpreted then and is to be
compiled now. Outputs must agree with eager PyTorch to 1e-4 of the output's largest value, in float32. Writes
bench/results/zoo.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from harness import thread_environment  # noqa: E402
from limited import failed, polled, together  # noqa: E402
from models import torchvision_operators, zoo_vision  # noqa: E402
from zoo_doors import DOORS, THROUGH, Refused, compared  # noqa: E402
from zoo_report import write_report  # noqa: E402


def transformers_cases() -> Iterator[tuple[str, Any]]:
    """Architectures of the package transformers, which only they need."""
    from models import zoo_transformers

    yield from zoo_transformers.CASES.items()


SOURCES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "torchvision": zoo_vision.torchvision_cases,
    "timm": zoo_vision.timm_cases,
    "transformers": transformers_cases,
}

TOO_LARGE = "too large"


def visits(
    make: Callable[[], Any], doors: Sequence[str], through: str, largest: float
) -> Iterator[dict[str, Any]]:
    """A model through each door: how far its outputs are from eager's, and how long it took."""
    torch.manual_seed(20)
    model, inputs = make()
    if sum(one.numel() for one in model.parameters()) > largest * 1e6:
        yield {"status": TOO_LARGE}
        return
    with torch.no_grad():
        expected = model(*inputs)
    for door in doors:
        started = time.perf_counter()
        try:
            found, note = DOORS[door](model, inputs, through)
        except Refused as refused:
            yield {"status": "refused by torch", "note": str(refused)[:300]}
        except Exception as error:  # noqa: BLE001 - whatever it is goes into the table
            yield failed(error)
        else:
            seconds = time.perf_counter() - started
            yield {**compared(found, expected), "seconds": round(seconds, 1), "note": note}


def preload() -> None:
    """Load here what every process of a model would load for itself."""
    import torch._dynamo
    import torch.onnx  # noqa: F401

    from tilewright import relay

    x = relay.var("x", shape=(1,))
    relay.create_executor("debug").evaluate(relay.Function([x], x + x))(np.ones(1, "float32"))
    torchvision_operators.load()
    for package in ("onnx", "onnxscript", "llvmlite", "timm"):
        if importlib.util.find_spec(package) is not None:
            importlib.import_module(package)
    for name in ("exported", "script.model", "ops"):
        importlib.import_module(f"tilewright.relay.frontend.torch.{name}")
    importlib.import_module("tilewright.relay.frontend.onnx.importer")


def records(path: Path) -> list[dict[str, Any]]:
    """What earlier runs found; the latest line of a model and door counts."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return list({(line["source"], line["model"], line["door"]): line for line in lines}.values())


def is_done(known: dict[str, Any] | None, through: str, again: bool) -> bool:
    """True if a result need not be found once more."""
    if known is None:
        return False
    is_partial = known.get("note", "").startswith("torch.compile")
    if again and (known["status"] not in ("ok", "refused by torch") or is_partial):
        return False
    order = list(THROUGH)
    return order.index(known["through"]) <= order.index(through)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default=",".join(SOURCES), help="with commas between them")
    parser.add_argument("--doors", default=",".join(DOORS), help="with commas between them")
    parser.add_argument("--through", default="code", choices=THROUGH, help="what runs an imported model")
    parser.add_argument("--only", help="parts of models' names, with commas between them")
    parser.add_argument(
        "--again", action="store_true", help="run what failed, or was left to PyTorch in part, once more"
    )
    parser.add_argument("--largest", type=float, default=1e6, help="millions of parameters; larger ones wait")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one model and door")
    parser.add_argument("--memory", type=float, default=12.0, help="GB for one model")
    parser.add_argument("--records", type=Path, default=HERE / "results" / "zoo.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "zoo.md")
    parser.add_argument(
        "--jobs", type=int, default=1, help="models at once, each on one thread where several"
    )
    options = parser.parse_args()
    alone = thread_environment(1)
    if options.jobs > 1 and not alone.items() <= os.environ.items():
        # The libraries have read these variables by now.
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **alone})
    preload()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        _run(options)
    finally:
        lines = records(options.records)
        options.records.write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_report(options.report, lines, list(DOORS))


def _run(options: argparse.Namespace) -> None:
    together(_visits_of_models(options), options.jobs)


def _visits_of_models(options: argparse.Namespace) -> Iterator[Generator[None]]:
    before = {(each["source"], each["model"], each["door"]): each for each in records(options.records)}
    words = options.only.split(",") if options.only else [""]
    for source in options.source.split(","):
        cases = [(name, make) for name, make in SOURCES[source]() if any(word in name for word in words)]
        # Models of which least is known come first: a run that is broken off has seen most of them.
        for name, make in sorted(cases, key=lambda case: sum(one[:2] == (source, case[0]) for one in before)):
            wanted = [
                door
                for door in options.doors.split(",")
                if not is_done(before.get((source, name, door)), options.through, options.again)
            ]
            if wanted:
                yield _visit(source, name, make, wanted, options)


def _visit(
    source: str, name: str, make: Callable[[], Any], wanted: list[str], options: argparse.Namespace
) -> Generator[None]:
    """Take a model through doors and record what is found, while its processes are waited for."""
    while wanted:
        work = partial(visits, make, list(wanted), options.through, options.largest)
        with closing(polled(work, options.limit, int(options.memory * 1e9))) as results:
            for found in results:
                if found is None:
                    yield
                    continue
                door = wanted.pop(0)
                print(f"{source} {name} {door}: {found['status']} {found.get('note', '')[:200]}", flush=True)
                if found["status"] == TOO_LARGE:
                    return
                if trace := found.pop("trace", None):
                    print(trace, file=sys.stderr, flush=True)
                line = {"source": source, "model": name, "door": door, "through": options.through}
                line |= {**found, "torch": torch.__version__}
                with options.records.open("a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
