"""Programs written for TVM, run as they are.

``import tilewright.as_tvm`` makes ``import tvm.x.y`` give Tilewright's modules, the very same objects, and ``import
tvm`` the package under that name, for the rest of the process. ``python -m tilewright.as_tvm script.py ARGS`` runs a
script that way, ``python -m tilewright.as_tvm -m module ARGS`` a module such as ``pytest`` or ``tvm.driver.tvmc``.
The processes that such a program starts with the same interpreter find ``tvm`` in the same way.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.compat.finder import install_foreign, our_name


def main(arguments: Sequence[str]) -> int:
    """Run a script or a module, with the arguments that follow it, as its own main program."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m tilewright.as_tvm (SCRIPT.py | -m MODULE) [ARGS ...]", file=sys.stderr)  # noqa: T201
        return 0 if arguments else 2
    _tell_children()
    if arguments[0] == "-m" and len(arguments) > 1:
        name = arguments[1]
        if name == "pytest":
            # What the decorators and parameters of tvm.testing note is done by its plugin.
            os.environ.setdefault("PYTEST_PLUGINS", "tvm.testing.plugin")
        sys.argv = [name, *arguments[2:]]
        runpy.run_module(our_name(name) or name, run_name="__main__", alter_sys=True)
        return 0
    script = Path(arguments[0])
    if not script.is_file():
        print(f"there is no script {script}", file=sys.stderr)  # noqa: T201
        return 2
    sys.argv = list(arguments)
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


def _tell_children() -> None:
    """Let ``import tvm`` and ``python -m tvm.x.y`` work in the processes that this one starts."""
    folder = str(Path(__file__).parent / "compat" / "children")
    given = os.environ.get("PYTHONPATH", "")
    if folder not in given.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{given}" if given else folder


install_foreign()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
