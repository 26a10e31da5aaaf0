"""The report of the debugging executor."""

import csv
import io
import json

import tilewright as tvm
from tilewright.runtime.profiling import NodeRun, Report

RUNS = [
    NodeRun(1, "first", "fused_add_0123abcd", 0.0, 1e-6),
    NodeRun(2, "second", "g", 1e-6, 2e-6),
    NodeRun(3, "third", "g", 3e-6, 1e-6),
]


def test_three_forms_of_a_report():
    """As a table the slowest comes first, with its part; CSV and JSON keep the order of execution."""
    report = tvm.runtime.profiling.Report(RUNS)
    assert report.total_seconds == 4e-6
    lines = report.table().splitlines()
    assert lines[1].split() == ["g", "2.000", "50.000", "cpu0", "1", "second"]
    assert lines[-1].split() == ["Total", "4.000"]
    assert report.table(sort=False).splitlines()[1].split()[0] == "fused_add_0123abcd"
    assert str(Report(RUNS)) == report.table()
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert [row["Node"] for row in rows] == ["first", "second", "third"]
    assert rows[0]["Hash"] == "0123abcd" and rows[1]["Hash"] == "" and float(rows[0]["Duration (us)"]) == 1
    parsed = json.loads(report.json())
    assert [call["Name"] for call in parsed["calls"]] == ["fused_add_0123abcd", "g", "g"]
    assert parsed["device_metrics"]["cpu0"]["Duration (us)"] == 4
    assert report.calls[1]["Percent"] == 50


def test_runs_of_one_function_on_one_line():
    """Their times, parts and counts are added; the last line adds all of them on request."""
    lines = Report(RUNS).table(aggregate=True, col_sums=True).splitlines()
    assert lines[1].split()[:5] == ["g", "3.000", "75.000", "cpu0", "2"]
    assert lines[-1].split() == ["Total", "4.000", "100.000", "3"]
