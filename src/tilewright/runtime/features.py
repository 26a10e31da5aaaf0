"""CPU features that compiled code needs, against those this machine has."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.runtime.failure import failure
from tilewright.runtime.library import QUICK


def has_feature(name: str) -> bool | None:
    """Whether this machine has a feature, under LLVM's name; None for a name the runtime does not know."""
    known = QUICK.tilewright_cpu_has_feature(name.encode())
    return None if known < 0 else bool(known)


def require_features(names: Sequence[str], what: str) -> None:
    """An error that names every feature that ``what`` needs and this machine lacks."""
    missing = [name for name in names if has_feature(name) is False]
    if missing:
        raise failure(
            "RuntimeError",
            f"{what} needs CPU features that this machine lacks: {', '.join(missing)}. "
            "Compile it for this machine, or for an older one with a target such as 'llvm -mcpu=x86-64-v2'.",
        )
