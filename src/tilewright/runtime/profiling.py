"""``Report``: the times of a model's kernels, from the debugging executor or the virtual machine's profiler."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tilewright.runtime.failure import failure
from tilewright.support import html


@dataclass(frozen=True)
class NodeRun:
    """What one node did: its position and name, the function it called, when it began and how long it took."""

    node: int
    name: str
    function: str
    begin_seconds: float
    seconds: float


_COLUMNS = ("Name", "Duration (us)", "Percent", "Device", "Count", "Hash", "Node")


class Report:
    """The runs of all nodes that call a function, as a table, as CSV or as JSON.

    A run has the function's name, its time in microseconds, its part of the whole in percent, the device, how often it
    ran, the hash that ends the function's name (empty where it has none) and the node's name.
    """

    def __init__(self, runs: list[NodeRun], device: str = "cpu0") -> None:
        self.runs = runs
        self.device = device

    @property
    def total_seconds(self) -> float:
        """The sum of all nodes' times."""
        return sum(run.seconds for run in self.runs)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The runs by column, in the order of execution."""
        total = self.total_seconds or 1.0
        return [
            {
                "Name": run.function,
                "Duration (us)": run.seconds * 1e6,
                "Percent": 100 * run.seconds / total,
                "Device": self.device,
                "Count": 1,
                "Hash": _hash_of(run.function),
                "Node": run.name,
            }
            for run in self.runs
        ]

    @property
    def device_metrics(self) -> dict[str, dict[str, Any]]:
        """The total of each device."""
        return {self.device: {"Duration (us)": self.total_seconds * 1e6, "Count": 1, "Device": self.device}}

    def table(self, sort: bool = True, aggregate: bool = False, col_sums: bool = False) -> str:
        """One line a run, the slowest first, then the total. ``aggregate`` puts runs of one function on one line."""
        calls = _joined(self.calls) if aggregate else self.calls
        if sort:
            calls.sort(key=_by_time)
        total = {"Name": "Total", "Duration (us)": self.total_seconds * 1e6}
        if col_sums:
            total |= {key: sum(call[key] for call in calls) for key in ("Percent", "Count")}
        rows = [list(_COLUMNS), *([_text(call.get(key, "")) for key in _COLUMNS] for call in [*calls, total])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        return "\n".join(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def csv(self) -> str:
        """A head line, then one line a run, in the order of execution."""
        rows = [[_text(call[key]) for key in _COLUMNS] for call in self.calls]
        return "\n".join(",".join(row) for row in [_COLUMNS, *rows]) + "\n"

    def json(self) -> str:
        """The calls and the totals of the devices. Each value stands under its unit, as TVM writes it."""
        return json.dumps(
            {
                "calls": [_with_units(call) for call in self.calls],
                "device_metrics": {
                    name: _with_units(metrics) for name, metrics in self.device_metrics.items()
                },
            }
        )

    @staticmethod
    def from_json(s: str) -> Report:
        """The report that ``json`` wrote."""
        try:
            calls = [_without_units(call) for call in json.loads(s)["calls"]]
            runs, begin = [], 0.0
            for number, call in enumerate(calls):
                seconds = float(call["Duration (us)"]) / 1e6
                runs.append(NodeRun(number, str(call.get("Node", "")), str(call["Name"]), begin, seconds))
                begin += seconds
            devices = {str(call.get("Device", "cpu0")) for call in calls}
        except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
            raise failure("ValueError", f"this is not the JSON of a report: {error!r}") from None
        return Report(runs, *sorted(devices)[:1])

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The runs for a notebook, the slowest first."""
        rows = [
            [
                call["Name"],
                html.Bar(call["Percent"] / 100, f"{call['Duration (us)']:.1f} us"),
                f"{call['Percent']:.1f}%",
                call["Node"],
            ]
            for call in sorted(self.calls, key=_by_time)
        ]
        total = f"{self.total_seconds * 1e6:.1f} us on {self.device}"
        return html.fragment(
            "Report", html.table(["function", "time", "share", "node"], rows), subtitle=total
        )


def _hash_of(function: str) -> str:
    """The eight hexadecimal digits that the name of a kernel ends in."""
    last = function.rpartition("_")[2]
    return last if len(last) == 8 and all(digit in "0123456789abcdef" for digit in last) else ""


def _joined(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for call in calls:
        known = made.setdefault(call["Name"], {**call, "Duration (us)": 0.0, "Percent": 0.0, "Count": 0})
        for key in ("Duration (us)", "Percent", "Count"):
            known[key] += call[key]
    return list(made.values())


_UNITS = {"Duration (us)": "microseconds", "Percent": "percent", "Count": "count"}


def _with_units(call: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: {_UNITS.get(key, "string"): value} for key, value in call.items()}


def _without_units(call: dict[str, Any]) -> dict[str, Any]:
    return {key: next(iter(value.values())) for key, value in call.items()}


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _by_time(call: dict[str, Any]) -> float:
    return -float(call["Duration (us)"])
