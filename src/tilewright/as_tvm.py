"""Programs written for TVM, run as they are.

``import tilewright.as_tvm`` makes ``import tvm`` and ``import tvm.x.y`` give Tilewright's modules, the very
same objects, for the rest of the process. ``python -m tilewright.as_tvm script.py ARGS`` runs a script that
way, ``python -m tilewright.as_tvm -m module ARGS`` a module such as ``pytest`` or ``tvm.driver.tvmc``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from tilewright.support.errors import TilewrightError

_FOREIGN, _OURS = "tvm", "tilewright"


def _our_name(name: str) -> str | None:
    """The name of our module for a name of theirs; None for other packages' names."""
    if name == _FOREIGN or name.startswith(f"{_FOREIGN}."):
        return _OURS + name[len(_FOREIGN) :]
    return None


class _SameModule(Loader):
    """Gives a module that is loaded already, under a second name."""

    def __init__(self, name: str) -> None:
        self.module = importlib.import_module(name)
        self.spec = self.module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the second name into the module; it keeps the first.
        module.__spec__ = self.spec


class _Finder(MetaPathFinder):
    """Finds ``tvm`` and everything below it in Tilewright."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = _our_name(fullname)
        if name is None:
            return None
        try:
            known = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            known = False
        if not known:
            raise ModuleNotFoundError(
                f"{fullname} is not part of this version of Tilewright (there is no module {name})",
                name=fullname,
            )
        return ModuleSpec(fullname, _SameModule(name), is_package=True)


def install() -> None:
    """Answer for ``tvm`` from now on. Does nothing the second time; refuses where the real TVM is loaded already."""
    loaded = sys.modules.get(_FOREIGN)
    if loaded is not None and loaded is not sys.modules.get(_OURS):
        raise TilewrightError(
            "tvm is imported already, from another package: import tilewright.as_tvm before it"
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def main(arguments: Sequence[str]) -> int:
    """Run a script or a module, with the arguments that follow it, as its own main program."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tilewright.as_tvm (SCRIPT.py | -m MODULE) [ARGS ...]", file=sys.stderr)  # noqa: T201
        return 0 if arguments else 2
    if arguments[0] == "-m" and len(arguments) > 1:
        name = arguments[1]
        if name == "pytest":
            # What the decorators and parameters of tvm.testing note is done by its plugin.
            os.environ.setdefault("PYTEST_PLUGINS", "tvm.testing.plugin")
        sys.argv = [name, *arguments[2:]]
        runpy.run_module(_our_name(name) or name, run_name="__main__", alter_sys=True)
        return 0
    script = Path(arguments[0])
    if not script.is_file():
        print(f"there is no script {script}", file=sys.stderr)  # noqa: T201
        return 2
    sys.argv = list(arguments)
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


install()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
