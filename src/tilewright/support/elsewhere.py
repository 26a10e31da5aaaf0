"""Names that a module offers and another one defines.

TVM has some things in one module that stand in several here. The module with TVM's name gives them on first use, by a
``__getattr__`` that this file makes, so that nothing is loaded for it and no circle of imports comes about.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def names_elsewhere(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``module``: each name comes from the module that ``places`` gives for it."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(places[name]), name)

    return find
