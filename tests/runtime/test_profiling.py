"""The report of the debugging executor."""

import csv
import io
import json

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.runtime import profiler_vm
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
    assert [call["Name"]["string"] for call in parsed["calls"]] == ["fused_add_0123abcd", "g", "g"]
    assert parsed["calls"][1]["Duration (us)"] == {"microseconds": 2.0}
    assert parsed["device_metrics"]["cpu0"]["Duration (us)"] == {"microseconds": 4.0}
    assert report.calls[1]["Percent"] == 50


def test_runs_of_one_function_on_one_line():
    """Their times, parts and counts are added; the last line adds all of them on request."""
    lines = Report(RUNS).table(aggregate=True, col_sums=True).splitlines()
    assert lines[1].split()[:5] == ["g", "3.000", "75.000", "cpu0", "2"]
    assert lines[-1].split() == ["Total", "4.000", "100.000", "3"]


def test_a_report_from_its_json():
    """The table is the same; what is not a report is refused."""
    report = Report(RUNS, "cuda0")
    assert Report.from_json(report.json()).table() == report.table()
    for text in ("", "[]", '{"calls": [1]}', '{"calls": [{"Name": {}}]}'):
        with pytest.raises(tvm.TVMError, match="not the JSON of a report"):
            Report.from_json(text)


def test_the_profiler_of_the_virtual_machine():
    """Every kernel of a run, with arguments given at once or before."""
    x = relay.var("x", shape=(relay.Any(), 4))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.relu(x))))
    assert profiler_vm.enabled()
    machine = profiler_vm.VirtualMachineProfiler(relay.vm.compile(mod, "llvm"), tvm.cpu())
    report = machine.profile(np.ones((3, 4), "float32"), func_name="main")
    assert "softmax" in str(report)
    assert all(call["Duration (us)"] > 0 and call["Device"] == "cpu0" for call in report.calls)
    machine.set_input("main", np.ones((5, 4), "float32"))
    assert [call["Name"] for call in machine.profile().calls] == [call["Name"] for call in report.calls]


def test_the_profiler_of_the_virtual_machine_shows_memory():
    """Allocations are calls of their own, before the kernels that write to them; other machines do not log them."""
    x = relay.var("x", shape=(relay.Any(), 4))
    program = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), "llvm")
    names = [
        call["Name"]
        for call in profiler_vm.VirtualMachineProfiler(program, tvm.cpu())
        .profile(np.ones((3, 4), "float32"))
        .calls
    ]
    (kernel,) = [place for place, name in enumerate(names) if "softmax" in name and "shape" not in name]
    assert {"VM::AllocStorage", "VM::AllocTensorReg"} <= set(names[:kernel])
    assert "VM::ShapeOf" in names
