"""Instruments: what watches passes run, set with ``PassContext(instruments=[...])``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

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
