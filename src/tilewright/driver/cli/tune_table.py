"""The live table of a search: which kernels it is about, how far each is, and how much time is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.driver.cli.output import printable

if TYPE_CHECKING:
    from tilewright.search.progress import SearchProgress, TaskProgress

COLUMNS = ("task", "best", "gain", "trials", "failed")
_UNKNOWN = float("inf")
_SECONDS_BETWEEN_FRAMES = 0.25
_SECONDS_BETWEEN_LINES = 10.0


def time_text(seconds: float) -> str:
    """A time as a person would write it: ``48 µs``."""
    if seconds == float("inf"):
        return "-"
    for limit, scale, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def clock_text(seconds: float) -> str:
    """Minutes and seconds: ``4:05``; a dash for a time without end."""
    if seconds == float("inf"):
        return "-"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def gain_text(task: TaskProgress) -> str:
    """How much faster than untuned, in per cent; empty before anything is found."""
    return "" if task.gain <= 1.0 else f"{100 * (task.gain - 1):.1f} %"


def ranked(tasks: Sequence[TaskProgress]) -> list[TaskProgress]:
    """The tasks by their share of the model's time, the largest first; those that failed last."""
    return sorted(tasks, key=lambda task: (task.untuned == _UNKNOWN, -task.calls * min(task.untuned, 1e9)))


def rows_of(tasks: Sequence[TaskProgress]) -> list[list[str]]:
    """The rows of the table, for any output."""
    return [
        [
            task.name,
            time_text(task.best),
            gain_text(task),
            str(task.trials),
            str(task.failures) if task.failures else "",
        ]
        for task in tasks
    ]


class LiveTable:
    """Shows a search while it runs: a table on a terminal, now and then a line elsewhere.

    It has no thread of its own, because a process with threads cannot fork builders: it is drawn when something was
    measured.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._live: Any = None
        self._drawn = 0.0
        self._told: set[str] = set()

    def __enter__(self) -> LiveTable:
        if not self.quiet and sys.stderr.isatty():
            # Only a terminal needs the library.
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=sys.stderr), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def changed(self, search: SearchProgress) -> None:
        """Something was measured."""
        patience = _SECONDS_BETWEEN_LINES if self._live is None else _SECONDS_BETWEEN_FRAMES
        if self.quiet or time.monotonic() - self._drawn < patience:
            return
        self._drawn = time.monotonic()
        if self._live is not None:
            self._live.update(self._frame(search), refresh=True)
        else:
            print(_status(search), file=sys.stderr, flush=True)

    def failed(self, task: TaskProgress) -> None:
        """Nothing of a kernel can be measured: say so at once, with the first error."""
        if self.quiet or task.name in self._told:
            return
        self._told.add(task.name)
        text = f"{task.name}: every candidate failed; the first error: {task.first_error}"
        if self._live is not None:
            self._live.console.print(printable(text), markup=False, highlight=False, soft_wrap=False)
        else:
            print(printable(text), file=sys.stderr, flush=True)

    def _frame(self, search: SearchProgress) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        console = self._live.console
        tasks = ranked(search.tasks)
        room = max(console.height - 5, 3)
        shown = tasks[:room]
        if search.current is not None and search.current not in shown:
            shown = [*shown[:-1], search.current]
        rows = rows_of(shown)
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        # Only names are shortened where the terminal is narrow.
        table.add_column(COLUMNS[0], no_wrap=True, overflow="ellipsis")
        for place, name in enumerate(COLUMNS[1:], 1):
            width = max(len(name), *(len(row[place]) for row in rows), 7)
            table.add_column(name, justify="right", no_wrap=True, min_width=width)
        for task, row in zip(shown, rows, strict=True):
            style = (
                "bold"
                if task is search.current
                else "red"
                if task.untuned == _UNKNOWN and task.trials
                else ""
            )
            table.add_row(*(Text(printable(cell)) for cell in row), style=style)
        rest = len(tasks) - len(shown)
        lines: list[Any] = [table]
        if rest > 0:
            lines.append(Text(f"and {rest} more", style="dim"))
        return Group(*lines, Text(_status(search), overflow="ellipsis", no_wrap=True))


def _status(search: SearchProgress) -> str:
    parts = []
    measured = [task for task in search.tasks if task.untuned != _UNKNOWN]
    if measured:
        before = sum(task.calls * task.untuned for task in measured)
        after = sum(task.calls * task.best for task in measured)
        parts.append(f"kernels {time_text(before)} → {time_text(after)}")
    parts.append(f"{search.trials} trials, {search.failures} failed")
    left = search.seconds_left
    parts.append(
        f"{clock_text(left)} left" if left != float("inf") else f"{clock_text(search.seconds)} so far"
    )
    return "; ".join(parts)
