"""``tvmc.main``: the command line as a function."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilewright.driver.cli import main as run_command


def _main(argv: Sequence[str]) -> int:
    """Run one command with these arguments; returns the exit code."""
    return run_command(argv)


def main() -> None:
    """Run the command of this process's arguments, and leave with its exit code."""
    sys.exit(_main(sys.argv[1:]))
