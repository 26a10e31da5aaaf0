"""External code generators, named before the target: ``--target "name --option=x, llvm"``.

None comes with this version. One that is registered here (its pass pipeline partitions the graph, and the build finds
its compiler) is then known to the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.driver.tvmc.errors import TVMCException

REGISTERED_CODEGEN: dict[str, dict[str, Any]] = {}
"""By name: ``config_key`` (the pass option that takes the target's options, or None) and ``pass_pipeline``."""


def register_codegen(name: str, pass_pipeline: Callable[..., Any], config_key: str | None = None) -> None:
    """Make a code generator known; ``pass_pipeline(mod, params, **options)`` gives the partitioned module."""
    REGISTERED_CODEGEN[name] = {"config_key": config_key, "pass_pipeline": pass_pipeline}


def get_codegen_names() -> list[str]:
    """The names that can precede the target."""
    return list(REGISTERED_CODEGEN)


def get_codegen_by_target(name: str) -> dict[str, Any]:
    """The code generator registered under a name."""
    found = REGISTERED_CODEGEN.get(name)
    if found is None:
        known = ", ".join(REGISTERED_CODEGEN) or "none are registered"
        raise TVMCException(f"the composite target {name} is not known ({known})")
    return found
