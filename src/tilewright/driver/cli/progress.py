"""A progress indicator on a terminal for anything that takes longer than a second; silent in a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DELAY_SECONDS = 1.0


class Progress:
    """The current step of a command. ``step`` announces the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lock = threading.Lock()
        self._display: Any = None
        self._ended = False

    def step(self, text: str) -> None:
        """Something else is being done from now on."""
        with self._lock:
            self.text = text
            if self._display is not None:
                self._display.update(self._display.task_ids[0], description=text)

    def show(self) -> None:
        """Begin to display, unless all is done already."""
        # Only a terminal needs the library, and only after a second.
        from rich.console import Console
        from rich.progress import Progress as Display
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._ended:
                return
            self._display = Display(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._display.add_task(self.text, total=None)
            self._display.start()

    def end(self) -> None:
        """Leave no trace on the terminal."""
        with self._lock:
            self._ended = True
            if self._display is not None:
                self._display.stop()


@contextmanager
def progress(text: str, quiet: bool = False) -> Iterator[Progress]:
    """Display a text, with a clock, while the block runs: where standard error is a terminal, after a second."""
    shown = Progress(text)
    timer = None
    if not quiet and sys.stderr.isatty():
        timer = threading.Timer(DELAY_SECONDS, shown.show)
        timer.daemon = True
        timer.start()
    try:
        yield shown
    finally:
        if timer is not None:
            timer.cancel()
        shown.end()
