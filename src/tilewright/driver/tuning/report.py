"""The report of a search for the browser: one self-contained file with a curve and a table of tasks.

It looks like the report of a profile, and shares its style and tools.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.driver.profile import report as profile_report
from tilewright.driver.tuning.model import ModelTuning
from tilewright.search.progress import TaskProgress
from tilewright.support.cbuild import write_bytes

_TEMPLATE = Path(__file__).resolve().parent / "template"


def write_report(result: ModelTuning, path: str | Path) -> None:
    """Write the report, whole or not at all."""
    write_bytes(Path(path), report_html(result).encode())


def report_html(result: ModelTuning) -> str:
    """The report as one page."""
    return profile_report.filled(
        (_TEMPLATE / "tuning.html").read_text(encoding="utf-8"),
        {
            "STYLE": profile_report.template_text("report.css"),
            "SCRIPT": profile_report.template_text("tools.js")
            + "\n"
            + (_TEMPLATE / "tuning.js").read_text(encoding="utf-8"),
            "DATA": profile_report.embedded_json(as_json(result)),
        },
    )


def as_json(result: ModelTuning) -> dict[str, Any]:
    """What a search came to, for programs and for the page."""
    both = result.comparison
    return {
        "model": result.model,
        "target": result.target,
        "records": result.records,
        "version": __version__,
        "seconds": result.seconds,
        "trials": result.trials,
        "failures": result.failures,
        "resumed": result.resumed,
        "kernels": result.kernels,
        "result": result.last_line(),
        "untuned_seconds": None if both is None else both.untuned,
        "tuned_seconds": None if both is None else both.tuned,
        "runs": None if both is None else both.runs,
        "improved": result.improved,
        "curve": [[point.seconds, point.trials, point.kernel_seconds] for point in result.curve],
        "tasks": [_task(task, result.applied) for task in result.tasks],
    }


def _task(task: TaskProgress, applied: Container[str]) -> dict[str, Any]:
    measured = task.untuned != float("inf")
    return {
        "name": task.name,
        "operator": task.operator,
        "calls": task.calls,
        "untuned_seconds": task.untuned if measured else None,
        "best_seconds": task.best if measured else None,
        "gain": task.gain,
        "applied": task.name in applied,
        "trials": task.trials,
        "failures": task.failures,
        "first_error": task.first_error,
        "choices": dict(task.changes),
    }
