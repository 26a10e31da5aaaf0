"""Helpers that callers of MetaSchedule use."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tilewright.runtime.registry import get_global_func, register_func
from tilewright.support.options import compile_processes


def cpu_count(logical: bool = True) -> int:
    """The number of processors that this process may use."""
    return compile_processes()


def get_global_func_with_default_on_worker(
    name: str | Callable[..., Any] | None, default: Callable[..., Any] | None
) -> Any:
    """A function that is given as it is, by the name it is registered under, or not at all: then the default."""
    if name is None:
        return default
    if callable(name):
        return name
    found = get_global_func(name, allow_missing=True)
    if found is None:
        raise ValueError(
            f"{name!r} is not the name of a registered function; register it in the initializer, "
            "which runs in each worker"
        )
    return found


@register_func("meta_schedule.remove_build_dir")
def remove_build_dir(artifact_path: str) -> None:
    """Remove the folder that an artefact was written to."""
    shutil.rmtree(Path(artifact_path).parent)


def require_overridden(made: object, base: type, names: Iterable[str]) -> None:
    """Raise ``NotImplementedError`` unless the class of ``made`` replaces these methods of ``base``."""
    missing = [name for name in names if getattr(type(made), name) is getattr(base, name)]
    if missing:
        raise NotImplementedError(f"{type(made).__name__} has to define {' and '.join(missing)}")
