"""``tilewright profile``: the table, JSON, the report and the trace."""

import json

import pytest

from tilewright.driver.cli import main


def test_model_gives_table_report_and_trace(small_onnx, tmp_path, capsys):
    """One command measures a model and writes both files."""
    report, trace = tmp_path / "report.html", tmp_path / "trace.json"
    options = ["-o", str(report), "--trace", str(trace), "--repeat", "2"]
    assert main(["profile", small_onnx, *options]) == 0
    printed = capsys.readouterr().out
    for text in (
        "GFLOP/s",
        "of limit",
        "all kernels",
        "MatMul multiply",
        "the median of 2",
        "report written to",
    ):
        assert text in printed
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]


def test_package_as_json(small_package, capsys):
    """A package is measured as it is; JSON has every kernel."""
    assert main(["profile", small_package, "--json", "--repeat", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compiling"] is None and len(found["kernels"]) >= 2
    assert sum(kernel["share"] for kernel in found["kernels"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.onnx"], "no.onnx"),
        (["no.tar"], "there is no package"),
        (["{model}", "-o", "{model}"], "would be overwritten"),
        (["{model}", "--trace", "{model}/trace.json"], "choose another place with --trace"),
        (["{model}", "--repeat", "0"], "at least 1"),
        (["{model}", "--inputs", "no.npz"], "there is no file no.npz"),
        (["{model}", "--target", "llvm -mtriple=aarch64-linux-gnu"], "cannot run on this machine"),
    ],
)
def test_mistakes_are_named(arguments, message, small_onnx, capsys):
    """What is wrong with a call is said, with the exit code for mistakes of the user."""
    assert main(["profile", *(one.format(model=small_onnx) for one in arguments)]) == 2
    assert message in capsys.readouterr().err
