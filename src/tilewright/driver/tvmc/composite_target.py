"""External code generators, named beside the target: ``--target "llvm, onednn"``, ``--target "name --option=x, llvm"``.

Those with a ``Backend`` are known, and chosen by measured cost. Another one that is registered here (its pass pipeline
partitions the graph, and the build finds its compiler) is then known to the command line too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tilewright as tvm
from tilewright.driver.tvmc.errors import TVMCException

REGISTERED_CODEGEN: dict[str, dict[str, Any]] = {}
"""By name: ``config_key`` (the pass option that takes the target's options, or None) and ``pass_pipeline``."""


def register_codegen(name: str, pass_pipeline: Callable[..., Any], config_key: str | None = None) -> None:
    """Make a code generator known; ``pass_pipeline(mod, params, **options)`` gives the partitioned module."""
    REGISTERED_CODEGEN[name] = {"config_key": config_key, "pass_pipeline": pass_pipeline}


def load_plugins(references: Iterable[str] | None) -> None:
    """Load the modules of ``--plugin``, each ``module`` or ``module:object``, which register backends."""
    for reference in references or ():
        tvm.relay.op.contrib.load_plugin(reference)


def get_codegen_names() -> list[str]:
    """The names that can stand beside the target."""
    return [*REGISTERED_CODEGEN, *(name for name in _backend_names() if name not in REGISTERED_CODEGEN)]


def _backend_names() -> list[str]:
    """The backends by name: they load the graph level, which a command without them does without."""
    found: list[str] = tvm.relay.op.contrib.backend_names()
    return found


def get_codegen_by_target(name: str) -> dict[str, Any]:
    """The code generator registered under a name."""
    found = REGISTERED_CODEGEN.get(name)
    if found is None and name in _backend_names():
        pipeline = tvm.relay.backend.byoc.partition.partition_function(name)
        return {"config_key": None, "pass_pipeline": pipeline}
    if found is None:
        known = ", ".join(get_codegen_names())
        raise TVMCException(f"the composite target {name} is not known ({known})")
    return found
