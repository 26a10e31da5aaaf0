"""Quantising models from the command line: ``data`` reads samples, ``model`` quantises and writes, ``report`` draws,
``by_layer`` finds where the error of a model jumps, and ``mixed`` computes in 16-bit floats.

The parts load on first use, like those of ``tvmc``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.driver.quantization import by_layer, data, mixed, model, report

_PARTS = ("by_layer", "data", "mixed", "model", "report")


def __getattr__(name: str) -> Any:
    """Load a part when it is first named."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
