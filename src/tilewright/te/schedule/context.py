"""The state of lowering one schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir.expr import IntImm, IterVar, Range, Var
from tilewright.te.schedule.loop_nest import Wrapper
from tilewright.te.schedule.relations import Ranges
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation
from tilewright.tir.stmt import Stmt


@dataclass
class LoweringContext:
    """Ranges of all axes, stages by the axis that they are computed at, how a stage becomes a statement, and
    how it becomes one around another."""

    ranges: Ranges
    attached: dict[IterVar, list[Stage]]
    pipeline: Callable[[Stage, Stmt], Stmt]
    provide: Callable[[Stage], Stmt]
    scopes: dict[Stage, str]
    scan_init: dict[Operation, list[Stage]]
    keep_trivial: bool = False
    analyzer: Analyzer = field(default_factory=Analyzer)
    loop_sets: dict[Var, IntervalSet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for axis, domain in self.ranges.items():
            if isinstance(domain.min, IntImm):
                self.note_loop(axis.var, domain)

    def note_loop(self, variable: Var, domain: Range) -> None:
        """A loop variable runs over this range."""
        self.loop_sets[variable] = IntervalSet.from_range(domain)
        self.analyzer.bind(variable, domain, allow_override=True)

    def attached_wrappers(self, axis: IterVar) -> list[Wrapper]:
        """The stages that are computed inside the loop of an axis, producers outermost."""
        stages = self.attached.get(axis, [])
        return [lambda body, stage=stage: self.pipeline(stage, body) for stage in stages]  # type: ignore[misc]
