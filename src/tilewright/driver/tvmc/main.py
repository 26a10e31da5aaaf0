"""``tvmc.main``: the command line as a function.

Its ``tune`` has the options of ``tvmc tune``, ``--enable-autoscheduler`` and those for remote devices among them, and
its ``run`` names outputs in files as ``tvmc run`` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilewright.driver.cli import main as run_command
from tilewright.driver.tvmc import autotuner
from tilewright.support.errors import TilewrightError


def _main(argv: Sequence[str]) -> int:
    """Run one command with these arguments; returns the exit code."""
    command = argv[0] if argv else ""
    if command == "tune":
        return _tune(argv)
    return run_command([*argv, "--by-position"] if command == "run" else argv)


def _tune(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tvmc")
    autotuner.add_tune_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    try:
        code: int = parsed.func(parsed)
    except TilewrightError as problem:
        sys.stderr.write(f"tvmc: {problem.message}\n")
        return 1
    return code


def main() -> None:
    """Run the command of this process's arguments, and leave with its exit code."""
    sys.exit(_main(sys.argv[1:]))
