"""Running passes on a program in a file: what ``tilewright opt`` does.

    from tilewright.driver import opt

    module = opt.programs.read_program("model.txt")
    passes = opt.pipelines.passes_from_text("FoldConstant, FuseOps{level=2}")
    print(opt.running.run_passes(module, passes, "llvm"))

The parts load on first use, like those of ``tvmc``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.driver.opt import listing, pipelines, programs, running

_PARTS = ("listing", "pipelines", "programs", "running")


def __getattr__(name: str) -> Any:
    """Load a part when it is first named."""
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
