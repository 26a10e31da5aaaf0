"""The conformance suite of ONNX: what passes goes on passing, and the list of what does not is true."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import onnx
import pytest
from tests.relay.frontend.onnx.conformance import FAILURES, listed_failures

RUNNER = Path(__file__).with_name("conformance.py")
SUITE = "1.23"
"""The version of the suite of which the list speaks."""


@pytest.mark.slow
@pytest.mark.skipif(
    not onnx.__version__.startswith(SUITE), reason=f"the list of failures is that of onnx {SUITE}"
)
def test_conformance(tmp_path):
    """Every case passes but for those in the list; a case in the list that passes is told of."""
    found = tmp_path / "results.json"
    environment = {**os.environ, "TILEWRIGHT_CHECK": "0", "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    source = str(Path(__file__).parents[4] / "src")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, str(RUNNER), "--json", str(found)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reasons = json.loads(found.read_text(encoding="utf-8"))["reasons"]
    failures = {name: reason for name, reason in reasons.items() if reason is not None}
    listed = listed_failures()
    broken = {name: reason for name, reason in failures.items() if name not in listed}
    mended = sorted(name for name in listed if name not in failures)
    assert not broken, "\n".join(f"{name}: {reason}" for name, reason in broken.items())
    if mended:
        warnings.warn(f"these pass: take them from {FAILURES.name}: {', '.join(mended)}", stacklevel=1)


def test_the_list_is_sorted_and_says_why():
    """A name, once, and a reason on every line."""
    listed = listed_failures()
    lines = [line for line in FAILURES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(listed) == len(lines) and list(listed) == sorted(listed)
    assert all(name.startswith("test_") and len(reason) > 10 for name, reason in listed.items())
