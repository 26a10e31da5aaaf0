"""``Report``: the times of a model's nodes, as the debugging executor gives them."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeRun:
    """What one node did: its position and name, the function it called, when it began and how long it took."""

    node: int
    name: str
    function: str
    begin_seconds: float
    seconds: float


class Report:
    """The runs of all nodes that call a function, as a table, as CSV or as JSON."""

    def __init__(self, runs: list[NodeRun]) -> None:
        self.runs = runs

    @property
    def total_seconds(self) -> float:
        """The sum of all nodes' times."""
        return sum(run.seconds for run in self.runs)

    def table(self, sort: bool = True) -> str:
        """One line a node, the slowest first, with its part of the whole."""
        total = self.total_seconds or 1.0
        width = max([len(run.name) for run in self.runs] + [4])
        lines = [f"{'node':<{width}}  {'time (us)':>12}  {'part':>6}  function"]
        for run in sorted(self.runs, key=_by_time) if sort else self.runs:
            share = run.seconds / total
            lines.append(f"{run.name:<{width}}  {run.seconds * 1e6:>12.2f}  {share:>6.1%}  {run.function}")
        lines.append(f"{'total':<{width}}  {self.total_seconds * 1e6:>12.2f}")
        return "\n".join(lines)

    def csv(self) -> str:
        """A head line, then one line a node, in the order of execution."""
        rows = [f"{run.node},{run.name},{run.function},{run.seconds * 1e6:.3f}" for run in self.runs]
        return "\n".join(["node,name,function,microseconds", *rows]) + "\n"

    def json(self) -> str:
        """The same as JSON."""
        calls = [
            {"node": r.node, "name": r.name, "function": r.function, "microseconds": r.seconds * 1e6}
            for r in self.runs
        ]
        return json.dumps({"calls": calls, "total_microseconds": self.total_seconds * 1e6})

    def __str__(self) -> str:
        return self.table()


def _by_time(run: NodeRun) -> float:
    return -run.seconds
