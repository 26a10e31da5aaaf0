"""``tilewright profile``: the table, JSON, the report and the trace."""

import json

import onnx
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
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


def test_level_four_uses_fast_math():
    """-O 4 runs the passes of that level: an exponential becomes the fast one, in the virtual machine as well."""
    x = relay.var("x", shape=(64,), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    settings = tvmc.compiler.make_settings("llvm", executor="vm", opt_level=4)
    assert "fast_exp" in str(settings.compile(module, {}).executable.primitive_ops)


def test_open_sizes_are_profiled_in_the_virtual_machine(tmp_path, capsys):
    """Without --executor, a model with an open batch runs in the virtual machine, on the shape that is given."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 8])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 8])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Tanh", ["x"], ["y"])], "open", [x], [y])
    path = tmp_path / "open.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    assert main(["profile", str(path), "--fill-shapes", "x:[5,8]", "--repeat", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["executor"] == "vm" and found["operations"] == 5 * 8
    assert main(["profile", str(path), "--fill-shapes", "x:[5,8"]) == 2
    assert "--fill-shapes" in capsys.readouterr().err
