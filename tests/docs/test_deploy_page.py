"""docs/deploy.md as a reader follows it: Python, programs and commands run in order in an empty folder.

A C or C++ block begins with a comment that names its file; a bash block is run as it stands; a text block after it is
what the commands printed last.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "deploy.md"
BLOCK = re.compile(r"^```(python|bash|c|cpp|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"\A(?:/\* (\S+) \*/|// (\S+))\n")
WARNINGS = "-Wall -Wextra -Werror"


def shell(commands: str, folder: Path) -> str:
    """What commands print, typed into a shell of this folder; they must end well. Compilers also get warnings."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    for compiler in ("cc", "c++"):
        program = bin_folder / compiler
        program.write_text(f'#!/bin/sh\nexec {shutil.which(compiler)} {WARNINGS} "$@"\n')
        program.chmod(0o755)
    tilewright = bin_folder / "tilewright"
    tilewright.write_text(f'#!/bin/sh\nexec {sys.executable} -m tilewright "$@"\n')
    tilewright.chmod(0o755)
    path = os.pathsep.join([str(bin_folder), os.environ["PATH"]])
    python_path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python_path}
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, commands + done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bash", "cc", "c++", "tar")),
    reason="needs bash, tar, a C and a C++ compiler",
)
def test_the_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program compiles without a warning and prints what the page says, which is what Python computes."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed, shown, programs = "", [], 0
    text = PAGE.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        language, content = found.groups()
        if language == "python":
            before = "\n" * text.count("\n", 0, found.start(2))
            exec(compile(before + content, str(PAGE), "exec"), names)
        elif language == "bash":
            printed = shell(content, tmp_path)
        elif language == "text":
            assert printed.endswith(content), content
            shown.append(content)
        else:
            named = FILE.match(content)
            assert named, f"a block of {language} does not begin with the name of its file:\n{content}"
            (tmp_path / (named[1] or named[2])).write_text(content)
            programs += 1
    assert programs >= 4 and len(shown) >= 5 and set(shown) == {shown[0], "1 10\n2 30\n3 60\n"}
    x = np.array([[1, 2, 3, 4], [4, 3, 2, 1]])
    weights = np.array([[0.1, 0.4, -0.2], [0.3, -0.1, 0.2], [-0.3, 0.2, 0.1], [0.2, 0.1, 0.3]])
    powers = np.exp(x @ weights)
    expected = powers / powers.sum(axis=1, keepdims=True)
    assert shown[0] == "".join(" ".join(f"{one:.4f}" for one in row) + "\n" for row in expected)
