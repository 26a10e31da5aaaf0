"""An instrument that records when every pass ran, the graph before fusion, and the loops of every kernel."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tilewright.ir.instrument import PassInstrument
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassInfo

FUSION, LOWERING = "FuseOps", "lower"
OUTSIDE = "schedules and LLVM"
"""The parts of compilation outside passes: tensor expressions with their schedules, and LLVM."""


@dataclass
class PassRun:
    """A run of a pass: when it began, in seconds after the first, how long it took, that without the passes inside it,
    and how many passes it ran in."""

    name: str
    begin_seconds: float
    depth: int
    seconds: float = 0.0
    own_seconds: float = 0.0


@dataclass(frozen=True)
class PassTotal:
    """All runs of a pass, without the passes inside it."""

    name: str
    runs: int
    seconds: float


class CompileWatch(PassInstrument):
    """Watches one compilation."""

    def __init__(self) -> None:
        self.runs: list[PassRun] = []
        self.before_fusion: IRModule | None = None
        self.loops: dict[str, IRModule] = {}
        self._open: list[PassRun] = []
        self._start = time.perf_counter()
        self.seconds = 0.0

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Start the clock of a pass."""
        if info.name == FUSION and self.before_fusion is None:
            self.before_fusion = mod
        run = PassRun(info.name, time.perf_counter() - self._start, len(self._open))
        self.runs.append(run)
        self._open.append(run)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop it."""
        now = time.perf_counter() - self._start
        while self._open:
            run = self._open.pop()
            run.seconds = now - run.begin_seconds
            run.own_seconds += run.seconds
            if self._open:
                self._open[-1].own_seconds -= run.seconds
            if run.name == info.name:
                break
        if info.name == LOWERING:
            self.loops.update({variable.name_hint: mod for variable in mod.functions})

    def finish(self) -> None:
        """All is compiled."""
        self.seconds = time.perf_counter() - self._start

    def totals(self) -> list[PassTotal]:
        """Every pass once, the longest first, and what is outside passes; together the whole time."""
        by_name: dict[str, list[float]] = {}
        for run in self.runs:
            by_name.setdefault(run.name, []).append(run.own_seconds)
        made = [PassTotal(name, len(times), sum(times)) for name, times in by_name.items()]
        made.append(PassTotal(OUTSIDE, 1, self.seconds - sum(one.seconds for one in made)))
        return sorted(made, key=lambda one: -one.seconds)
