"""``tilewright inspect``: models and packages."""

import json

from tilewright.driver.cli import main


def inspected(capsys, *arguments):
    """The JSON that is printed."""
    assert main(["inspect", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_model(small_onnx, capsys):
    """Inputs, outputs, operators, parameters and work of a model."""
    found = inspected(capsys, small_onnx)
    assert found["kind"] == "model"
    assert found["inputs"] == [{"name": "x", "shape": [2, 4], "dtype": "float32"}]
    assert found["operators"]["nn.relu"] == 1 and found["operators"]["nn.softmax"] == 1
    assert found["parameters"] == {"tensors": 2, "elements": 15, "bytes": 60}
    assert found["multiply_accumulates"] == 2 * 4 * 3
    assert main(["inspect", small_onnx]) == 0
    printed = capsys.readouterr().out
    assert "24 multiply-accumulates" in printed and "nn.softmax" in printed


def test_open_sizes_are_shown(open_onnx, capsys):
    """A size that is open is null, or what --input-shapes says."""
    assert inspected(capsys, open_onnx)["inputs"][0]["shape"] == [None, 4]
    assert inspected(capsys, open_onnx, "--input-shapes", "x:[7,4]")["inputs"][0]["shape"] == [7, 4]


def test_a_package(small_package, capsys):
    """Executor, target, kernels and memory of a package."""
    found = inspected(capsys, small_package)
    assert (found["kind"], found["executor"], found["format"]) == ("package", "graph", "classic")
    assert found["target"].startswith("llvm")
    assert found["kernels"] and all(count == 1 for count in found["kernels"].values())
    assert found["parameters"]["bytes"] >= 60
    assert found["library"] == "mod.tar" and found["library_bytes"] > 0
    assert main(["inspect", small_package]) == 0
    assert "inputs and outputs" in capsys.readouterr().out


def test_a_program_of_the_virtual_machine(open_onnx, tmp_path, capsys):
    """Its kernels and constants are listed too."""
    path = str(tmp_path / "vm.tar")
    assert main(["compile", open_onnx, "--executor", "vm", "-f", "tar", "-o", path]) == 0
    capsys.readouterr()
    found = inspected(capsys, path)
    assert found["executor"] == "vm" and found["kernels"] and found["parameters"]["bytes"] >= 60


def test_what_is_neither(tmp_path, capsys):
    """A file that is missing or of no known kind is named."""
    for name in ("missing.onnx", "missing.tar"):
        assert main(["inspect", str(tmp_path / name)]) == 2
        assert name in capsys.readouterr().err
    (tmp_path / "text.xyz").write_text("hello")
    assert main(["inspect", str(tmp_path / "text.xyz")]) == 2
    assert "--model-format" in capsys.readouterr().err
