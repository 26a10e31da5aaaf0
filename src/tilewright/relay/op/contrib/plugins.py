"""Backends of other packages.

An installed package names its backends among its entry points, and they are loaded when they are used::

    [project.entry-points."tilewright.backends"]
    my_chip = "my_chip.backend:MyChip"

What is named is a class derived from ``UMABackend``, or a function that registers the backend.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from tilewright.support.errors import TilewrightError

ENTRY_POINTS: Final = "tilewright.backends"


@cache
def installed_plugins() -> Mapping[str, str]:
    """The backends of installed packages: ``module:object`` by name."""
    return {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}


def load_plugin(reference: str) -> None:
    """Import ``module:object`` and call the object; what it returns is registered, if it is a backend. A reference
    without an object is a module that registers its backends when it is imported."""
    module, _, member = reference.partition(":")
    if not all(name.isidentifier() for name in (*module.split("."), *(member or "x").split("."))):
        raise TilewrightError(f"a plugin is named as module or module:object, not {reference!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # programs that are installed as commands do not search the current folder
    try:
        found = metadata.EntryPoint(module, reference, ENTRY_POINTS).load()
        if member:
            if not callable(found):
                raise TypeError(f"{member} is a {type(found).__name__}, not a class or a function")
            made = found()
            register = getattr(made, "register", None)
            if callable(register):
                register()
    except (Exception, SystemExit) as error:
        said = str(error) or "no message"
        raise TilewrightError(
            f"the plugin {reference!r} cannot be loaded: {type(error).__name__}: {said}"
        ) from error
