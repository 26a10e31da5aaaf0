"""The machine on which a newcomer's first hour is run."""

import shutil
import subprocess
import sys

import pytest

import first_hour


def machine(folder, **changes):
    """One with everything."""
    return first_hour.Machine(folder, **{"has_compiler": True, "has_home": True, **changes})


def test_without_a_compiler_there_is_none_on_the_path(tmp_path):
    """Every other program stays."""
    path = machine(tmp_path, has_compiler=False).environment()["PATH"]
    assert not any(shutil.which(name, path=path) for name in first_hour.COMPILERS)
    assert shutil.which("sh", path=path) and shutil.which("tar", path=path)


def test_nothing_of_ours_gets_into_the_environment(tmp_path, monkeypatch):
    """Neither the source tree nor a cache of this machine helps."""
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "/somewhere")
    variables = machine(tmp_path).environment()
    assert not any(name.startswith(("PYTHON", "TILEWRIGHT")) for name in variables)
    assert variables["HOME"] == str(tmp_path / "home")


def test_a_step_that_fails_or_prints_a_traceback_is_an_error(tmp_path):
    """With what it printed."""
    here = machine(tmp_path)
    assert here.run(sys.executable, "-c", "print('fine')") == "fine\n"
    with pytest.raises(first_hour.StepError, match="exit code 3"):
        here.run(sys.executable, "-c", "raise SystemExit(3)")
    with pytest.raises(first_hour.StepError, match="a traceback"):
        here.run(sys.executable, "-c", "print('Traceback (most recent call last)')")
    with pytest.raises(first_hour.StepError, match="did not print 'agrees'"):
        first_hour.expect("DIFFERS", "agrees")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="links to programs")
def test_the_first_hour_of_this_environment(tmp_path):
    """Everything but the installation, with the interpreter that runs the tests."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    for name in ("python", "tilewright"):
        starts = f"#!/bin/sh\nexport PYTHONPATH={first_hour.ROOT}/src\nexec {sys.executable}"
        script = tmp_path / "venv" / "bin" / name
        script.write_text(f'{starts}{" -m tilewright" if name == "tilewright" else ""} "$@"\n')
        script.chmod(0o755)
    ran = subprocess.run(
        [
            sys.executable,
            first_hour.__file__,
            "--folder",
            str(tmp_path),
            "--only",
            "demo",
            "model",
            "compile",
            "run",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(" ok") == 4
