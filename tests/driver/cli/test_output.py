"""Tables and sizes as the command line prints them."""

import json
import sys

import pytest

from tilewright.driver.cli.output import (
    DiffOutput,
    bytes_text,
    check_output,
    printable,
    show_json,
    show_table,
)
from tilewright.support.errors import ModelError


def test_plain_table_has_aligned_columns(capsys):
    """In a pipe, a table is plain text with columns of one width."""
    show_table("title", ["name", "n"], [["a", 1], ["longer", 22]])
    assert capsys.readouterr().out == "title\n  name    n\n  a       1\n  longer  22\n\n"


def test_terminal_table_has_a_bold_heading(capsys, monkeypatch):
    """On a terminal the title and the heading are bold, unless the user wants no colours; text is shown as it is."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show_table("title", ["what"], [['pip install "tilewright[cross]"']])
    printed = capsys.readouterr().out
    assert "\x1b[1mtitle\x1b[0m" in printed and 'pip install "tilewright[cross]"\n' in printed
    monkeypatch.setenv("NO_COLOR", "1")
    show_table("title", ["what"], [["cell"]])
    assert "\x1b" not in capsys.readouterr().out


def test_diffs_have_colours_on_a_terminal(capsys, monkeypatch):
    """In a pipe, or where a user wants none, a diff is plain."""
    diff = "# FuseOps\n@@ -1 +1 @@\n same\n-old\n+new\n"
    DiffOutput().write(diff)
    assert capsys.readouterr().err == diff
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    DiffOutput().write(diff)
    assert "\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    DiffOutput().write(diff)
    assert capsys.readouterr().err == diff


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (48 << 10, "48 KiB"),
        (1280 << 10, "1.2 MiB"),
        (260 << 20, "260 MiB"),
        (5 << 40, "5120 GiB"),
    ],
)
def test_bytes_text(size, text):
    """Sizes are given in the largest unit that they fill."""
    assert bytes_text(size) == text


def test_outputs_are_checked_before_the_work(tmp_path):
    """The folder of an output is made; a place that the system refuses is an error with the option that names it."""
    check_output(str(tmp_path / "new" / "module.tar"), "-o")
    assert (tmp_path / "new").is_dir() and not list((tmp_path / "new").iterdir())
    if sys.platform != "linux":
        return
    with pytest.raises(ModelError, match=r"/proc/module\.tar cannot be written \(.+\): choose another place"):
        check_output("/proc/module.tar", "-o")


def test_a_terminal_does_not_obey_names(capsys):
    """Escape sequences in a model's names are shown, in tables, in JSON and in text."""
    hostile = "a\x1b]0;owned\x07b\x9b2J\r"
    assert printable(hostile) == r"a\x1b]0;owned\x07b\x9b2J\r"
    assert printable("größe\tλ\n") == "größe\tλ\n"
    show_table(hostile, ["name"], [[hostile]])
    show_json({"name": hostile})
    shown = capsys.readouterr().out
    assert not any(one in shown for one in "\x1b\x07\x9b\r")
    assert json.loads(shown[shown.index("{") :]) == {"name": hostile}
