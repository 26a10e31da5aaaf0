"""Progress: on a terminal after a while, never in a pipe."""

import io
import sys
import time

from tilewright.driver.cli import progress as module
from tilewright.driver.cli.progress import progress


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self):
        return True


def test_long_work_is_shown_on_a_terminal(monkeypatch):
    """After the delay, the present step is shown."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    with progress("first [step]") as shown:
        shown.step("second [step]")
        for _ in range(500):
            if "second [step]" in terminal.getvalue():
                break
            time.sleep(0.02)
    assert "second [step]" in terminal.getvalue()


def test_short_work_and_pipes_are_quiet(monkeypatch):
    """Nothing is shown before the delay, in a pipe, or where quiet is asked for."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("quick"):
        pass
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.0)
    with progress("silent", quiet=True):
        time.sleep(0.05)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress("piped"):
        time.sleep(0.05)
    assert terminal.getvalue() == "" and pipe.getvalue() == ""
