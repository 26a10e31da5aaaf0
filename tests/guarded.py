"""Running Python in a child process whose tensors have guard pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"


def run_guarded(
    script: str, *arguments: str, mode: str = "end", timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """The finished process; its status is the negative number of a signal where one ended it."""
    paths = os.pathsep.join(filter(None, (str(SOURCES), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "TILEWRIGHT_GUARD_PAGES": mode, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
