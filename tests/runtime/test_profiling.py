"""The report of the debugging executor."""

import json

import tilewright as tvm
from tilewright.runtime.profiling import NodeRun, Report

RUNS = [NodeRun(1, "first", "f", 0.0, 1e-6), NodeRun(2, "second", "g", 1e-6, 3e-6)]


def test_three_forms_of_a_report():
    """As a table the slowest comes first, with its part; CSV and JSON keep the order of execution."""
    report = tvm.runtime.profiling.Report(RUNS)
    assert report.total_seconds == 4e-6
    lines = report.table().splitlines()
    assert lines[1].split()[0] == "second" and "75.0%" in lines[1] and lines[-1].startswith("total")
    assert report.table(sort=False).splitlines()[1].split()[0] == "first"
    assert report.csv().splitlines()[1] == "1,first,f,1.000"
    assert [call["name"] for call in json.loads(report.json())["calls"]] == ["first", "second"]
    assert str(Report(RUNS)) == report.table()
