"""Where a model's time and memory go: measured kernel by kernel, as a table, a trace and a report for the browser.

    from tilewright.driver import profile, tvmc

    settings = tvmc.compiler.make_settings("llvm")
    report = profile.collect.profile_model(tvmc.load("model.onnx"), settings, "model.onnx")
    profile.report.write_report(report, "report.html")

The parts load on first use, like those of ``tvmc``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.driver.profile import collect, kernels, report, table, trace

_PARTS = ("collect", "kernels", "report", "table", "trace")


def __getattr__(name: str) -> Any:
    """Load a part when it is first named."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
