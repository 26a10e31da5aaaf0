"""Files of tuned records that are applied by default: ``TOPHUB_LOCATION`` is a folder of them.

TVM downloads such files from the network. Here they are files that you have: one for each kind of target, called
``<kind>_<version>.log`` as TVM's are, or ``<kind>.log``.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from tilewright.autotvm.record import load_from_file
from tilewright.autotvm.task.context import DispatchContext
from tilewright.autotvm.task.dispatcher import ApplyHistoryBest
from tilewright.support.errors import TilewrightError
from tilewright.support.options import tophub_folder
from tilewright.target.target import Target

logger = logging.getLogger("autotvm")

PACKAGE_VERSION = {
    "arm_cpu": "v0.08",
    "llvm": "v0.04",
    "cuda": "v0.10",
    "rocm": "v0.05",
    "opencl": "v0.04",
    "mali": "v0.06",
    "intel_graphics": "v0.02",
    "vta": "v0.10",
    "amd_apu": "v0.01",
}
"""The versions that TVM 0.8 names its files by."""

_ALIASES = {"webgpu": "opencl", "vulkan": "opencl", "nvptx": "cuda", "amd_apu": "amd_apu"}


class EmptyContext(DispatchContext):
    """A context that knows nothing."""

    def _query_inside(self, target: Any, workload: Any) -> Any:
        return None

    def update(self, target: Any, workload: Any, cfg: Any) -> None:
        """Nothing is kept."""


def _alias(name: str) -> str:
    return _ALIASES.get(name, name)


def context(target: Any, extra_files: Any = None) -> DispatchContext:
    """The records of the folder for one or more targets, and those of ``extra_files``."""
    location = _folder()
    targets = target if isinstance(target, (list, tuple)) else [target]
    best = ApplyHistoryBest([])
    is_empty = True
    for one in targets:
        described = one if isinstance(one, Target) else Target(one)
        names = [_alias(name) for name in (described.device_name, described.kind.name) if name]
        for name in names:
            path = None if location is None else _file_of(location, name)
            if path is not None:
                best.load(path)
                is_empty = False
                break
    files = (
        [] if extra_files is None else [extra_files] if isinstance(extra_files, (str, Path)) else extra_files
    )
    for file in files:
        best.load(file)
        is_empty = False
    return EmptyContext() if is_empty else best


def _folder() -> Path | None:
    given = tophub_folder()
    return None if not given or given == "NONE" else Path(given)


def _file_of(folder: Path, name: str) -> Path | None:
    version = PACKAGE_VERSION.get(name)
    names = [f"{name}.log"] if version is None else [f"{name}_{version}.log", f"{name}.log"]
    return next((folder / one for one in names if (folder / one).is_file()), None)


def check_backend(tophub_location: str | Path, backend: str) -> bool:
    """True if the folder has a file for a kind of target."""
    return _file_of(Path(tophub_location), _alias(backend)) is not None


def download_package(tophub_location: str | Path, package_name: str) -> None:
    """Nothing is downloaded: an error unless the file is there."""
    path = Path(tophub_location) / package_name
    if not path.is_file():
        raise TilewrightError(
            f"there is no {path}, and nothing is downloaded: put the file there, or tune and use "
            "autotvm.apply_history_best"
        )


REFERENCE_LOG_CACHE: dict[tuple[str, str, str], list[Any]] = {}


def load_reference_log(backend: str, model: str, workload_name: str) -> list[Any]:
    """The records of a task for a model of a kind of target, for ``fallback_with_reference_log``; without such a
    model, those of the model that has most."""
    key = (backend, model, workload_name)
    if key not in REFERENCE_LOG_CACHE:
        REFERENCE_LOG_CACHE[key] = _reference_log(_alias(backend), model, workload_name)
    return REFERENCE_LOG_CACHE[key]


def _reference_log(backend: str, model: str, workload_name: str) -> list[Any]:
    location = _folder()
    path = None if location is None else _file_of(location, backend)
    if path is None:
        return []
    by_model: dict[str, list[Any]] = {}
    for inp, res in load_from_file(path):
        if inp.task.name == workload_name and res.error_no == 0:
            by_model.setdefault(inp.target.model, []).append((inp, res))
    if model in by_model:
        return by_model[model]
    return max(by_model.values(), key=len, default=[])


AUTOTVM_TOPHUB_ROOT_PATH = Path(os.path.expanduser("~")) / ".tvm" / "tophub"
"""Where TVM keeps its files; ``TOPHUB_LOCATION`` may name it."""
