"""The table of the zoo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import write_table

TITLES = {"export": "torch.export", "compile": "torch.compile", "script": "TorchScript", "onnx": "ONNX"}

MARKS = {"code": "", "quick": " ¹", "reference": " ²"}
"""How a cell says what ran the imported model."""


def cell(line: dict[str, Any] | None) -> str:
    """One model and door."""
    if line is None:
        return "not run"
    if line["status"] == "ok":
        left = ", in part" if line.get("note", "").startswith("torch.compile") else ""
        return f"{line['difference']:.0e}, {line['seconds']:.0f} s{left}{MARKS[line['through']]}"
    return f"**{line['status']}**"


def write_report(path: Path, lines: Sequence[dict[str, Any]], doors: Sequence[str]) -> None:
    """A row a model, and after the table every failure with its reason."""
    found = {(line["source"], line["model"], line["door"]): line for line in lines}
    sources = list(dict.fromkeys(line["source"] for line in lines))
    models = sorted(
        dict.fromkeys((line["source"], line["model"]) for line in lines),
        key=lambda one: sources.index(one[0]),
    )
    rows = [
        [source, model.replace("|", "/"), *(cell(found.get((source, model, door))) for door in doors)]
        for source, model in models
    ]
    counts = Counter((line["source"], line["door"], line["status"]) for line in lines)
    total = [
        f"- {source}, {TITLES[door]}: "
        + ", ".join(
            f"{counts[each]} {each[2]}{_interpreted(lines, each)}"
            for each in sorted(counts)
            if each[:2] == (source, door)
        )
        for source in sources
        for door in doors
        if any(each[:2] == (source, door) for each in counts)
    ]
    failed = [line for line in lines if line["status"] not in ("ok", "refused by torch")]
    reasons = [
        f"- {line['model']}, {TITLES[line['door']]}: {line['status']} {_short(line)}" for line in failed
    ]
    left = [
        f"- {line['model']}: {_short(line)}"
        for line in lines
        if line["status"] == "ok" and line["door"] == "compile" and line.get("note")
    ]
    notes = [
        "Each cell: the largest difference from eager PyTorch, as a part of the output's largest value (1e-4 is "
        "allowed), and the seconds from the model to its outputs, compilation included. Batch 1, float32, random "
        "weights, small inputs. “In part”: some operators were left to PyTorch. “Refused by torch”: PyTorch does not "
        "export or trace the model. ¹: compiled with LLVM's optimisation off (`--through quick`). ²: the imported "
        "model was run by the interpreter on NumPy references, not compiled (`--through reference`). The last layers "
        "of mask and keypoint detectors are scaled down: with random weights eager PyTorch's own masks in float32 are "
        "1e-3 from those in float64.",
        "",
        f"Results by version of PyTorch: {_versions(lines)}. The machines differ, and with them the seconds.",
        "",
        *total,
        "",
        "## Failures",
        "",
        *(reasons or ["None."]),
        "",
        "## Left to PyTorch under torch.compile",
        "",
        *(left or ["Nothing."]),
    ]
    header = ["source", "model", *(TITLES[door] for door in doors)]
    write_table(path, "Models through every door", header, rows, "\n".join(notes))


def _versions(lines: Sequence[dict[str, Any]]) -> str:
    counts = Counter(line.get("torch", "not recorded") for line in lines)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _short(line: dict[str, Any]) -> str:
    text = line.get("note") or f"{line.get('difference', 0):.1e}"
    return text.splitlines()[0][:200] if text.count("\n") == 0 else " ".join(text.split())[:300]


def _interpreted(lines: Sequence[dict[str, Any]], kind: tuple[str, str, str]) -> str:
    """How many of the results of one kind were not compiled, where they agree."""
    found = sum(
        (line["source"], line["door"], line["status"]) == kind and line["through"] == "reference"
        for line in lines
    )
    return f" ({found} of them interpreted)" if found and kind[2] == "ok" else ""
