"""Serves the modules of ``providers``: those without a file as modules, those with one by adding names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from tilewright.compat.providers import PROVIDERS

_PACKAGE = "tilewright."
_PARENTS = {path.rpartition(".")[0] for path in PROVIDERS}


def _attributes(path: str) -> dict[str, Any]:
    if path not in PROVIDERS:
        return {}
    module, _, function = PROVIDERS[path].partition(":")
    found: dict[str, Any] = getattr(importlib.import_module(module), function)(path)
    return found


class _Names(Loader):
    """Runs a module's own code where it has some; then names that it lacks come from the table."""

    def __init__(self, inner: Loader | None) -> None:
        self.inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None if self.inner is None else self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        path = module.__name__.removeprefix(_PACKAGE)
        if self.inner is None:
            vars(module).update(_attributes(path))
        else:
            self.inner.exec_module(module)
        own = vars(module).get("__getattr__")

        def find(name: str) -> Any:
            if f"{path}.{name}" in PROVIDERS:
                return importlib.import_module(f"{module.__name__}.{name}")
            if not name.startswith("__") and name in _attributes(path):
                return _attributes(path)[name]
            if own is not None:
                return own(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        vars(module)["__getattr__"] = find


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(_PACKAGE)
        if name == fullname or (name not in PROVIDERS and name not in _PARENTS):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None:
            return ModuleSpec(fullname, _Names(None), is_package=True) if name in PROVIDERS else None
        spec.loader = _Names(spec.loader)
        return spec


def install() -> None:
    """Answer for these modules from now on."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
