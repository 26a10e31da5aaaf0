"""Operators that compute their indices, run once more with guard pages before every tensor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FILES = ("nn/test_pad.py", "test_slicing.py", "test_indexing.py", "test_sort.py", "image")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no guard pages on Windows")
def test_operators_that_compute_indices_stay_behind_the_start_of_their_tensors() -> None:
    """Their own tests, in a process that a read before a tensor would end; behind tensors, every test has the pages."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--guard-pages", "start"]
    done = subprocess.run(
        [*command, *(str(HERE / name) for name in FILES)],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}"
