"""The commands of docs/first-model.md run as they are printed, between its Python."""

import re
import shlex
from pathlib import Path

from tilewright.driver.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-model.md"
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_commands_and_code_run_in_order(tmp_path, monkeypatch, capsys):
    """Each command ends with 0, and finds what the blocks before it made."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    commands = 0
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "tilewright"
            assert main(arguments) == 0, line
            commands += 1
    assert commands == 8
    printed = capsys.readouterr().out
    assert "reference executor" in printed and "agrees" in printed
    assert (tmp_path / "result.npz").exists()
