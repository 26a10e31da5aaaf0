"""Code generators that TVM's ``tvmc`` names beside a target, and that cut their parts out of a graph here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import tilewright as tvm


def _for_compute_library(mod: Any, params: Any = None, **options: Any) -> Any:
    # Loaded when it is used: a command without it does without the graph level.
    libraries: Any = tvm.relay.op.contrib
    return libraries.arm_compute_lib.partition_for_arm_compute_lib(mod, params, **options)


def _for_bnns(mod: Any, params: Any = None, **options: Any) -> Any:
    libraries: Any = tvm.relay.op.contrib
    return libraries.bnns.partition_for_bnns(mod, params, **options)


def add_composite_targets(composite_target: ModuleType) -> None:
    """Make them known to ``tvmc``. The build says which code generator is missing, unless somebody registers it."""
    composite_target.register_codegen("compute-library", _for_compute_library)
    composite_target.register_codegen("bnns", _for_bnns)
