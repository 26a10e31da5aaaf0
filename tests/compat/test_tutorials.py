"""Programs in the manner of TVM's tutorials run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "tutorials").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_tutorial_runs(script: Path) -> None:
    """Through ``python -m tilewright.as_tvm``; each script asserts what it shows."""
    command = [sys.executable, "-m", "tilewright.as_tvm", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
