"""Programs written for TVM run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.script import tir as T
from tvm.tir import ir_builder

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
s = te.create_schedule(B.op)
fadd = tvm.build(s, [A, B], tvm.target.Target("llvm"), name="myadd")
dev = tvm.cpu(0)
a = tvm.nd.array(np.arange(4, dtype="float32"), dev)
b = tvm.nd.array(np.zeros(4, dtype="float32"), dev)
fadd(a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1)
import tilewright
assert tvm.__name__ == "tvm" and tvm.te is tilewright.te and te.Schedule is tilewright.te.Schedule
assert tilewright.te.__spec__.name == "tilewright.te"
try:
    import tvm.topi.nowhere
except ModuleNotFoundError as error:
    assert "not part of this version" in str(error)
print("ran with", sys.argv[1:])
"""


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    """A script that imports tvm runs, gets its arguments, and sees the same objects under both names."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright.as_tvm", str(script), "one", "two"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "ran with ['one', 'two']\n"


def test_the_import_alone_is_enough(tmp_path: Path) -> None:
    """After ``import tilewright.as_tvm``, tvm is there for the rest of the process."""
    code = "import tilewright.as_tvm, tvm; from tvm.te import schedule; assert tvm.tir.const(1).value == 1"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_child_processes(tmp_path: Path) -> None:
    """A process that the script starts finds tvm, as a module to import and to run."""
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, sys\n"
        "code = 'import tvm.te, tilewright; print(tvm.__name__, tvm.te is tilewright.te)'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
        "subprocess.run([sys.executable, '-m', 'tvm.exec.query_rpc_tracker', '--help'], check=True)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright.as_tvm", str(script)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("tvm True\nusage:")


def test_a_missing_script_is_said() -> None:
    """The error names the file, and the exit code is two."""
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright.as_tvm", "no_such.py"], capture_output=True, text=True
    )
    assert ran.returncode == 2 and "no_such.py" in ran.stderr


def test_modules_run_too(tmp_path: Path) -> None:
    """``-m`` runs another program's module, which then sees tvm, or one of TVM's own, with the exit code it gives."""
    (tmp_path / "program.py").write_text("import sys, tvm\nprint(tvm.__name__, sys.argv[1:])\nsys.exit(3)\n")
    command = [sys.executable, "-m", "tilewright.as_tvm", "-m"]
    ran = subprocess.run([*command, "program", "one"], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "tvm ['one']\n"), ran.stderr
    ran = subprocess.run([*command, "tvm.driver.tvmc", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout[:11]) == (0, "tilewright "), ran.stderr
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright.driver.tvmc", "run", "no.tar"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (2, "tilewright: there is no package no.tar\n")


def test_pytest_runs_with_the_plugin(tmp_path: Path) -> None:
    """Tests that take a target run on those that are enabled, without a conftest."""
    (tmp_path / "test_it.py").write_text(
        "import tvm, tvm.testing\n"
        "@tvm.testing.exclude_targets('cuda')\n"
        "def test_it(target, dev):\n    assert dev == tvm.device(target)\n"
    )
    command = [sys.executable, "-m", "tilewright.as_tvm", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run([*command, "test_it.py"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr
