"""Instruments: what watches passes run, set with ``PassContext(instruments=[...])``."""

from __future__ import annotations

import difflib
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassInfo


class PassInstrument:
    """Base of instruments; every method may be overridden, none must be."""

    def enter_pass_ctx(self) -> None:
        """The context begins."""

    def exit_pass_ctx(self) -> None:
        """The context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """False skips the pass, unless the context requires it."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """A pass is about to run on the module."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """A pass has made the module."""


_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


def pass_instrument(pi_cls: Any = None) -> Any:
    """Make an instrument of a class that has some of the methods of ``PassInstrument``; a class decorator."""

    def create(given: Any) -> Any:
        if not isinstance(given, type):
            raise TypeError(f"pass_instrument decorates a class, not {type(given).__name__}")
        if not any(callable(getattr(given, name, None)) for name in _METHODS):
            raise TypeError(
                f"class {given.__name__} has none of the methods of an instrument: {', '.join(_METHODS)}"
            )
        if issubclass(given, PassInstrument):
            return given
        return type(
            given.__name__,
            (given, PassInstrument),
            {"__module__": given.__module__, "__doc__": given.__doc__},
        )

    return create if pi_cls is None else create(pi_cls)


class _Timing:
    """How long one pass ran, and the passes that ran inside it."""

    __slots__ = ("inner", "name", "start", "stop")

    def __init__(self, name: str) -> None:
        self.name = name
        self.inner: list[_Timing] = []
        self.start = time.perf_counter()
        self.stop: float | None = None

    @property
    def total(self) -> float:
        """Seconds, the inner passes included; of a pass that failed, those of its inner passes."""
        return self.stop - self.start if self.stop is not None else sum(each.total for each in self.inner)

    @property
    def own(self) -> float:
        """Seconds without the inner passes."""
        return self.total - sum(each.total for each in self.inner)


class PassTimingInstrument(PassInstrument):
    """Measures every pass. ``render`` gives the tree of times; a new context starts anew."""

    def __init__(self) -> None:
        self._roots: list[_Timing] = []
        self._open: list[_Timing] = []

    def enter_pass_ctx(self) -> None:
        """Forget the times of an earlier context."""
        self._roots, self._open = [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Start the clock."""
        timing = _Timing(info.name)
        (self._open[-1].inner if self._open else self._roots).append(timing)
        self._open.append(timing)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop the clock. A pass that failed never gets here: its entry ends with the one around it."""
        while self._open:
            timing = self._open.pop()
            if timing.name == info.name:
                timing.stop = time.perf_counter()
                break

    def render(self) -> str:
        """One line a pass: microseconds, those without inner passes, its share of the pass around it, and of all."""
        whole = sum(timing.total for timing in self._roots)
        lines: list[str] = []
        stack = [(timing, 0, whole) for timing in reversed(self._roots)]
        while stack:
            timing, depth, around = stack.pop()
            share = f"{_percent(timing.total, around)}; {_percent(timing.total, whole)}"
            times = f"{timing.total * 1e6:.0f}us [{timing.own * 1e6:.0f}us]"
            lines.append("\t" * depth + f"{timing.name}: {times} ({share})")
            stack.extend((each, depth + 1, timing.total) for each in reversed(timing.inner))
        return "\n".join(lines)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole > 0 else "0.00%"


class _Printing(PassInstrument):
    """Writes the module around passes, of all or of those that are named."""

    def __init__(self, passes: Sequence[str] | None = None, output: TextIO | None = None) -> None:
        self.passes = None if passes is None else frozenset(passes)
        self.output = output

    def _print(self, when: str, mod: IRModule, info: PassInfo) -> None:
        if self.passes is None or info.name in self.passes:
            (self.output or sys.stdout).write(f"# {when} {info.name}\n{mod}\n")


class PrintBeforeAll(_Printing):
    """Writes the module before every pass, or before those that are named."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write it."""
        self._print("before", mod, info)


class PrintAfterAll(_Printing):
    """Writes the module after every pass, or after those that are named."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write it."""
        self._print("after", mod, info)


class _Changes(PassInstrument):
    """Finds the passes that change the text of their module. What does not change it is passed over, and so is a
    sequence whose last pass made the text that is already known."""

    def __init__(self) -> None:
        self._open: list[tuple[str, IRModule]] = []
        self._module: IRModule | None = None
        self._text = ""

    def entered(self, text: str, info: PassInfo) -> None:
        """A pass outside of all others starts with a module that has not been seen yet."""

    def changed(self, before: str, text: str, info: PassInfo) -> None:
        """A pass has made another text of the one before."""
        raise NotImplementedError

    def enter_pass_ctx(self) -> None:
        """Forget what an earlier context left."""
        self._open = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Keep the module to compare with."""
        if not self._open and mod is not self._module:
            text = str(mod)
            if self._module is None or text != self._text:
                self.entered(text, info)
            self._module, self._text = mod, text
        self._open.append((info.name, mod))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Compare with what the pass was given. One that failed never gets here: the pass around it takes its entry
        away."""
        before: IRModule | None = None
        while self._open:
            name, before = self._open.pop()
            if name == info.name:
                break
        if before is None or mod is before or mod is self._module:
            return
        given = self._text if before is self._module else str(before)
        text, known = str(mod), self._text
        self._module, self._text = mod, text
        if text not in (given, known):
            self.changed(given, text, info)


class Writable(Protocol):
    """What text can be written to."""

    def write(self, text: str, /) -> object:
        """Write some text."""


class PrintChanged(_Changes):
    """Writes how each pass changes the text of the module, as a diff; passes that change nothing are left out."""

    def __init__(self, output: Writable | None = None, context_lines: int = 3) -> None:
        super().__init__()
        self.output = output
        self.context_lines = context_lines

    def changed(self, before: str, text: str, info: PassInfo) -> None:
        """Write the diff."""
        lines = difflib.unified_diff(
            before.splitlines(), text.splitlines(), lineterm="", n=self.context_lines
        )
        # The first two lines name files, of which there are none.
        shown = "\n".join(list(lines)[2:])
        (self.output or sys.stdout).write(f"# {info.name}\n{shown}\n")


class DumpIR(_Changes):
    """Writes the text of the module into a folder: as ``000_input.txt`` what the first pass gets, and after every pass
    that changes it ``NNN_PassName.txt``. Files are complete as soon as they have their name."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._count = 0

    def entered(self, text: str, info: PassInfo) -> None:
        """Write what is given."""
        self._write("input", text)

    def changed(self, before: str, text: str, info: PassInfo) -> None:
        """Write what was made."""
        self._write(info.name, text)

    def _write(self, name: str, text: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:100]
        path = self.folder / f"{self._count:03}_{safe}.txt"
        self._count += 1
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(text + "\n", encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


class PassPrintingInstrument(PassInstrument):
    """Writes the module before and after the passes that are named."""

    def __init__(
        self, print_before_pass_names: Sequence[str] = (), print_after_pass_names: Sequence[str] = ()
    ) -> None:
        self._before = PrintBeforeAll(print_before_pass_names)
        self._after = PrintAfterAll(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write it if the pass is among those to print before."""
        self._before.run_before_pass(mod, info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write it if the pass is among those to print after."""
        self._after.run_after_pass(mod, info)


class CheckEveryPass(PassInstrument):
    """Calls a function on every module that a pass makes: for checks that a user brings."""

    def __init__(self, check: Callable[[IRModule, PassInfo], None]) -> None:
        self.check = check

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check it."""
        self.check(mod, info)
