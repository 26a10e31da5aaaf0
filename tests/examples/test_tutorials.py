"""The tutorials run as programs that say ``import tvm``; each asserts what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples" / "tutorials").glob("*.py"))
RUN_ALL = """
import contextlib, io, json, runpy, sys, traceback
results = {}
for script in sys.argv[1:]:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(script, run_name="__main__")
        results[script] = ""
    except BaseException:
        results[script] = traceback.format_exc()
json.dump(results, sys.stdout)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The error of each script, empty where it ran: one process runs them all, so that packages load once."""
    runner = tmp_path_factory.mktemp("tutorials") / "run_all.py"
    runner.write_text(RUN_ALL)
    command = [sys.executable, "-m", "tilewright.as_tvm", str(runner), *map(str, SCRIPTS)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=runner.parent)
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_tutorial_runs(results: dict[str, str], script: Path) -> None:
    """Without an error."""
    assert results[str(script)] == "", results[str(script)]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_tutorial_is_short(script: Path) -> None:
    """At most 60 lines of code, and a first line that the page of tutorials can quote."""
    lines = script.read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert lines[0].startswith('"""') and len(code) <= 60
