"""The tests of the CUDA device without a GPU: on a simulated driver, in a process of their own.

A driver is loaded once a process, and other tests of this one must find that there is none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import traced

from tilewright.support.cbuild import SOURCES, find_compiler, write_beside
from tilewright.support.options import cache_dir

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]


def mock_driver() -> Path:
    """The simulated driver, built when its sources have changed."""
    if sys.platform != "linux" or shutil.which("cc") is None:
        pytest.skip("the simulated driver needs Linux and a C compiler")
    sources = sorted(FOLDER.glob("mock_cuda*.c"))
    headers = [FOLDER / "mock_cuda.h", SOURCES / "cuda_driver.h"]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in [*sources, *headers])).hexdigest()[:20]
    output = cache_dir() / "mock_cuda" / key / "libmockcuda.so"
    if not output.exists():
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]
        write_beside(
            output,
            lambda path: find_compiler().run([*flags, "-I", SOURCES, *sources, "-o", path, "-pthread"]),
        )
    return output


def test_on_the_simulated_driver(request: pytest.FixtureRequest) -> None:
    """Everything that a GPU is tested for holds there too, but for what needs PyTorch's CUDA or a clock."""
    environment = {**os.environ, "TILEWRIGHT_CUDA_DRIVER": str(mock_driver())}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "gpu", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [
            *command,
            *traced(request.config),
            str(FOLDER / "test_cuda_gpu.py"),
            "tests/search/test_measure_on_gpu.py",
        ],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout
