"""Tuning of whole models: ``model`` searches and compares, ``records`` applies what was found, ``report`` shows it.

The parts load on first use, like those of ``tvmc``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.driver.tuning import comparison, model, records, report, states

_PARTS = ("comparison", "model", "records", "report", "states")


def __getattr__(name: str) -> Any:
    """Load a part when it is first named."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
