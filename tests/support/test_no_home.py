"""A machine without a home, or with one that cannot be written: everything works, and nothing is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.support import cbuild, options

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders that cannot be made are POSIX's")

_BUILD = """
import numpy as np
import tilewright as tvm
from tilewright import relay
x = relay.var("x", shape=(4,))
library = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
print(library.session().run({"x": np.zeros(4)})["output_0"][0])
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home below a file, which not even the superuser can make, and a temporary folder of its own."""
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XDG_CACHE_HOME", "TILEWRIGHT_CACHE_DIR")
    }
    return {**kept, "HOME": str(tmp_path / "file" / "home"), "TMPDIR": str(tmp_path / "tmp")}


@pytest.mark.parametrize(
    ("command", "shown"),
    [(["-c", _BUILD], "1.0"), (["-m", "tilewright", "doctor"], "nothing is kept between runs")],
    ids=["build", "doctor"],
)
def test_a_home_that_cannot_be_written(environment: dict[str, str], command: list[str], shown: str) -> None:
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout
    assert "Traceback" not in done.stderr
    assert not list(Path(environment["TMPDIR"]).glob("tilewright-runtime-*"))


def test_the_cache_command(environment: dict[str, str]) -> None:
    for action in ("show", "path", "clear"):
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", "cache", action],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_home_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(cls: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "TILEWRIGHT_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", classmethod(none))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert options.cache_dir() == tmp_path / f"tilewright-{os.getuid()}"


def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What lies in it is code that would be run."""
    monkeypatch.setattr(cbuild, "_is_foreign", lambda folder: True)
    assert tmp_path not in cbuild._build_folder(tmp_path / "runtime", "key").parents
