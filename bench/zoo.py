"""The zoo: models of torchvision, timm and transformers through every door that PyTorch models come in by.

Run it:  python bench/zoo.py [--source torchvision,timm,transformers] [--doors export,compile,script,onnx]
                             [--only resnet,swin] [--again] [--limit 300]

Every model and door has a process of its own, with limits of time and memory. Results are appended to a file, one line
of JSON each, so that a run can be broken off and continued: what is in the file is not run again. Outputs must agree
with eager PyTorch to 1e-4 of the output's largest value, in float32. Writes bench/results/zoo.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from limited import run  # noqa: E402
from models import zoo_transformers, zoo_vision  # noqa: E402
from zoo_doors import DOORS, Refused, compared  # noqa: E402
from zoo_report import write_report  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilewright-bench"
"""Where a run that was broken off continues from."""

SOURCES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "torchvision": zoo_vision.torchvision_cases,
    "timm": zoo_vision.timm_cases,
    "transformers": lambda: iter(zoo_transformers.CASES.items()),
}


def one(make: Callable[[], Any], door: str) -> dict[str, Any]:
    """A model through a door: how far its outputs are from eager's, and how long it took."""
    torch.manual_seed(20)
    model, inputs = make()
    with torch.no_grad():
        expected = model(*inputs)
    started = time.perf_counter()
    try:
        found, note = DOORS[door](model, inputs)
    except Refused as refused:
        return {"status": "refused by torch", "note": str(refused)[:300]}
    seconds = time.perf_counter() - started
    return {**compared(found, expected), "seconds": round(seconds, 1), "note": note}


def records(path: Path) -> list[dict[str, Any]]:
    """What earlier runs found; the latest line of a model and door counts."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return list({(line["source"], line["model"], line["door"]): line for line in lines}.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default=",".join(SOURCES), help="with commas between them")
    parser.add_argument("--doors", default=",".join(DOORS), help="with commas between them")
    parser.add_argument("--only", help="parts of models' names, with commas between them")
    parser.add_argument("--again", action="store_true", help="run what failed before once more")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one model and door")
    parser.add_argument("--memory", type=float, default=12.0, help="GB for one model and door")
    parser.add_argument("--records", type=Path, default=CACHE / "zoo.jsonl")
    parser.add_argument("--report", type=Path, default=HERE / "results" / "zoo.md")
    options = parser.parse_args()
    before = {(each["source"], each["model"], each["door"]): each for each in records(options.records)}
    options.records.parent.mkdir(parents=True, exist_ok=True)
    words = options.only.split(",") if options.only else [""]
    for source in options.source.split(","):
        for name, make in SOURCES[source]():
            if not any(word in name for word in words):
                continue
            for door in options.doors.split(","):
                known = before.get((source, name, door))
                if known is not None and not (options.again and known["status"] != "ok"):
                    continue
                work = partial(one, make, door)
                found = run(work, options.limit, int(options.memory * 1e9))
                line = {"source": source, "model": name, "door": door, **found}
                with options.records.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                note = line["note"].splitlines()[0][:120] if line["note"] else ""
                print(f"{source} {name} {door}: {line['status']} {note}", flush=True)
    write_report(options.report, records(options.records), list(DOORS))


if __name__ == "__main__":
    main()
