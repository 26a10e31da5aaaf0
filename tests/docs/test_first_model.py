"""The commands of the README and of docs/first-model.md run as they are printed, between their Python."""

import re
import shlex
from pathlib import Path

import pytest

from tilewright.driver.cli import main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "count", "made"), [("README.md", 4, "report.html"), ("docs/first-model.md", 8, "result.npz")]
)
def test_commands_and_code_run_in_order(page, count, made, tmp_path, monkeypatch, capsys):
    """Each command ends with 0, and finds what the blocks before it made."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    commands = 0
    for language, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, page, "exec"), names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            assert program == "tilewright"
            assert main(arguments) == 0, line
            commands += 1
    assert commands == count
    printed = capsys.readouterr().out
    assert "reference executor" in printed and "agrees" in printed
    assert (tmp_path / made).exists()
