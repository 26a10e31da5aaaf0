"""``tilewright tune``, and what ``compile`` does with its records."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.driver.cli.tune_command import seconds_of
from tilewright.driver.cli.tune_table import clock_text, time_text
from tilewright.runtime.device import cuda
from tilewright.search.kernel_records import KernelRecord, read_kernel_records
from tilewright.search.records import RecordFile
from tilewright.support.errors import ModelError


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """The path of a model with a product and a convolution, whose schedules have choices."""
    generator = np.random.default_rng(0)
    arrays = {"w1": (8, 3, 3, 3), "w2": (8, 20)}
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype("float32"), name)
        for name, shape in arrays.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalMaxPool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 13, 13))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 20))]
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    path = tmp_path_factory.mktemp("tune") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return str(path)


@pytest.fixture(scope="module")
def tuned(net, tmp_path_factory):
    """What one short run printed as JSON, and the path of its records and of its report."""
    folder = tmp_path_factory.mktemp("tuned")
    records, report = folder / "records.json", folder / "report.html"
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright", "tune", net, "--trials", "3", "-o", str(records)]
        + ["--report", str(report), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout), str(records), report


def test_a_search_is_told_task_by_task(tuned):
    """Its trials, its times, its result in one line, and every measurement in the file."""
    found, records, _ = tuned
    assert found["trials"] == 3 and found["failures"] == 0 and found["resumed"] == 0
    assert re.search(r"faster than untuned; \d of \d tasks improved", found["result"])
    assert found["tasks"] and all(task["untuned_seconds"] > 0 for task in found["tasks"])
    assert sum(task["trials"] for task in found["tasks"]) == 3 + len(found["tasks"])
    # The schedules that are in use without tuning are measured first.
    first = read_kernel_records(RecordFile(records)).records[: len(found["tasks"])]
    assert len({record.workload for record in first}) == len(found["tasks"])


def test_the_report_is_one_page_with_its_data(tuned):
    """Nothing is loaded, and the data are the run's."""
    found, _, report = tuned
    page = report.read_text()
    text = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(text)["result"] == found["result"]
    frame = page.replace(text, "")
    assert "{{" not in frame.replace("${{", "") and not re.search(r"""(src|href)=["'](?!data:|#)""", frame)


def test_running_it_again_goes_on(tuned, net, tmp_path, capsys):
    """It says how much it found, and measures other candidates."""
    records = tmp_path / "records.json"
    records.write_bytes(Path(tuned[1]).read_bytes())
    before = records.read_text()
    assert main(["tune", net, "--trials", "2", "-o", str(records)]) == 0
    captured = capsys.readouterr()
    assert re.search(r"2 candidates in \d+ s, \d+ from earlier runs; 0 failed", captured.out)
    assert captured.out.splitlines()[-1].endswith("tasks improved")
    assert records.read_text().startswith(before) and len(records.read_text()) > len(before)


def with_gain(records, gain, tmp_path, **changes):
    """A copy of a file of records in which the last candidate is so many times faster than untuned."""
    candidate = [one for one in read_kernel_records(RecordFile(records)).records if one.gain is None][-1]
    row = json.loads(candidate.line("test"))
    row["tilewright"] |= {"gain": gain, **changes}
    path = tmp_path / "gained.json"
    path.write_text(json.dumps(row) + "\n")
    return str(path)


def test_compile_applies_records(tuned, net, tmp_path, capsys):
    """The package computes the same, and the command says how many kernels are tuned."""
    path = with_gain(tuned[1], 1.5, tmp_path)
    output = str(tmp_path / "m.tar")
    assert main(["compile", net, "-o", output, "-f", "tar", "--tuning-records", path]) == 0
    assert f"{path}: 1 kernel uses a schedule that tuning found" in capsys.readouterr().out
    x = np.random.default_rng(3).standard_normal((1, 3, 13, 13)).astype("float32")
    plain = tvmc.compile(tvmc.load(net), "llvm", output_format="tar")
    found, expected = (
        tvmc.run(package, device="cpu", inputs={"x": x}, repeat=1, number=1).get_output("output_0")
        for package in (tvmc.TVMCPackage(output), plain)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    by_python = tvmc.compile(tvmc.load(net), "llvm", tuning_records=path, output_format="tar")
    assert by_python.executor_type == "graph"


def test_slower_records_are_not_applied(tuned, net, tmp_path, capsys):
    """A record that measured slower than untuned has no effect."""
    path = with_gain(tuned[1], 0.8, tmp_path)
    assert main(["compile", net, "-o", str(tmp_path / "m.tar"), "-f", "tar", "--tuning-records", path]) == 0
    assert "no record in it measured faster than the untuned schedule" in capsys.readouterr().out


def test_records_of_another_machine_are_refused(tuned, net, tmp_path, capsys):
    """With the reason; the model is compiled as ever."""
    path = with_gain(tuned[1], 2.0, tmp_path, machine="i486, 0 bits, 1 cores")
    assert main(["compile", net, "-o", str(tmp_path / "m.tar"), "-f", "tar", "--tuning-records", path]) == 0
    printed = capsys.readouterr().out
    assert "is not used: it was measured on another machine (i486, 0 bits, 1 cores)" in printed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file {path}: 'tilewright tune MODEL -o {path}' makes one"),
        (b"", "{path} has no tuning records"),
        (b"\x00\x01model\n", "{path} has no tuning records (line 1: not JSON)"),
        (
            b'{"a": 1}\n',
            "{path} has no tuning records (line 1: not a tuning record: it has no input and result)",
        ),
        (
            b"[1, 2]\n",
            "{path} has no tuning records (line 1: not a tuning record: it is not an object of JSON)",
        ),
    ],
    ids=["missing", "empty", "binary", "another object", "a list"],
)
def test_files_without_records_are_an_error(content, message, net, tmp_path, capsys):
    """For ``compile``, which would otherwise pass over a mistake."""
    path = tmp_path / "r.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["compile", net, "-o", str(tmp_path / "m.tar"), "--tuning-records", str(path)]) == 2
    assert message.format(path=path) in capsys.readouterr().err


def test_tune_does_not_append_to_a_file_of_something_else(net, tmp_path, capsys):
    """The file stays as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("shopping\nlist\n")
    assert main(["tune", net, "-o", str(path)]) == 2
    assert (
        "is not a file of tuning records (line 1: not JSON): choose another name with -o"
        in capsys.readouterr().err
    )
    assert path.read_text() == "shopping\nlist\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--time", "soon"], "--time takes a time such as 90s, 5m or 1h30m, not 'soon'"),
        (["--time", "0"], "longer than nothing"),
        (["--trials", "0"], "--trials takes a number of at least 1, not 0"),
        (["--target", "llvm -mtriple=aarch64-linux-gnu"], "cannot be measured here"),
        pytest.param(
            ["--target", "cuda"],
            "this machine has no NVIDIA GPU that can be used. Tune on the machine that runs the model",
            marks=pytest.mark.skipif(cuda().exist, reason="there is a GPU"),
        ),
        (["--report", "."], "is a folder"),
    ],
)
def test_wrong_values_are_explained(options, message, net, tmp_path, capsys):
    """The exit code is 2, and nothing is searched; a target that cannot be measured is an error before the model is
    read."""
    if "--target" in options:
        net = str(tmp_path / "not-read.onnx")
    assert main(["tune", net, "-o", str(tmp_path / "r.json"), *options]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "r.json").exists()


def test_times_as_people_write_them():
    """Read and written."""
    assert [seconds_of(one) for one in ("90", "90s", "5m", "1h30m", "1.5m")] == [90, 90, 300, 5400, 90]
    with pytest.raises(ModelError):
        seconds_of("5 minutes")
    assert [time_text(one) for one in (4.8e-5, 0.0123, 2.0)] == ["48 µs", "12.3 ms", "2 s"]
    assert clock_text(245) == "4:05"


def read_until_end(process, end):
    """What a process writes to its terminal."""
    written = b""
    while True:
        ready, _, _ = select.select([end], [], [], 60)
        try:
            block = os.read(end, 1 << 16) if ready else b""
        except OSError:
            block = b""
        if not block:
            process.wait()
            return written.decode()
        written += block


def test_the_table_fits_a_terminal_of_80_columns(net, tmp_path):
    """Names are shortened, numbers are not, and what stays on the screen fits."""
    end, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "tune", net, "--trials", "2", "-o", str(tmp_path / "r.json")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    written = read_until_end(process, end)
    os.close(end)
    assert process.returncode == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    lines = re.split(r"[\r\n]+", plain)
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if line.lstrip().startswith("task ")]
    assert heads and all(re.search(r"best\s+gain\s+trials\s+failed", line) for line in heads)
    assert any(re.search(r"\d trials, 0 failed; \d+:\d\d so far", line) for line in lines)


def assert_ended(group):
    """Nothing that a killed command started goes on: neither builders nor what runs candidates."""
    until = time.monotonic() + 30
    with suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            assert time.monotonic() < until, "processes of a killed command go on"
            time.sleep(0.05)


@pytest.mark.slow
def test_kill_at_any_moment_loses_nothing_that_was_measured(net, tmp_path):
    """Killed several times, the file has whole records, and each run goes on where the last ended."""
    path = tmp_path / "records.json"
    file = RecordFile(path)
    generator = np.random.default_rng(5)
    counts = []
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-m", "tilewright", "tune", net, "--time", "10m", "-o", str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        before = len(counts) and counts[-1]
        until = time.monotonic() + 90
        while len(list(file.lines())) <= before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(float(generator.uniform(0, 1.0)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert_ended(process.pid)
        loaded = file.read(KernelRecord.from_json)
        assert len(loaded.problems) <= len(counts) + 1
        counts.append(len(list(file.lines())))
    assert counts == sorted(set(counts))
    records = read_kernel_records(file).records
    measured = [(one.workload, one.choices) for one in records if one.gain is None]
    constructed = {one.workload: one.choices for one in reversed(records) if one.gain is None}
    again = [one for one in measured if measured.count(one) > 1]
    # Only the schedules without tuning are measured in every run.
    assert {choices for _, choices in again} <= {measured[place][1] for place in range(len(constructed))}
