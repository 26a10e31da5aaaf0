"""``tilewright compile``: what it writes, what it prints, and how it fails."""

import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.ir.op import Op


def compiled(model, output, capsys, *options):
    """Compile to objects, which needs no linker; the JSON that is printed."""
    assert main(["compile", model, "-o", str(output), "-f", "tar", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def outputs_of(package, x):
    """What a package gives for x."""
    return list(
        tvmc.run(tvmc.TVMCPackage(str(package)), "cpu", inputs={"x": x}, repeat=1, number=1).outputs.values()
    )


X = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_every_executor_gives_the_same_numbers(executor, small_onnx, tmp_path, capsys, expected):
    """A package runs by itself, whatever executes it."""
    report = compiled(small_onnx, tmp_path / "m.tar", capsys, "--executor", executor)
    assert report["executor"] == executor
    assert report["inputs"] == [{"name": "x", "shape": [2, 4], "dtype": "float32"}]
    assert [one["shape"] for one in report["outputs"]] == [[2, 3], [2, 3]]
    for found, wanted in zip(outputs_of(tmp_path / "m.tar", X), expected(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_package_is_what_tvmc_makes(small_onnx, tmp_path, capsys):
    """By default there is a shared library, a graph and parameters in the tar, and the summary names it."""
    path = tmp_path / "module.tar"
    assert main(["compile", small_onnx, "-o", str(path)]) == 0
    printed = capsys.readouterr().out
    assert f"written   {path}" in printed and "x float32[2, 4]" in printed
    with tarfile.open(path) as archive:
        assert sorted(archive.getnames()) == ["mod.json", "mod.params", "mod.so", "package.json"]


def test_one_shared_library(small_onnx, tmp_path, expected):
    """An output that ends in .so is the library alone, with the model inside."""
    path = tmp_path / "model.so"
    assert main(["compile", small_onnx, "-o", str(path)]) == 0
    np.testing.assert_allclose(outputs_of(path, X)[1], expected(X)[1], rtol=1e-5)


def test_model_library_format(small_onnx, tmp_path, capsys, expected):
    """A model library of the graph executor, and of a model compiled ahead of time to C source."""
    assert main(["compile", small_onnx, "-o", str(tmp_path / "g.tar"), "-f", "mlf"]) == 0
    np.testing.assert_allclose(outputs_of(tmp_path / "g.tar", X)[0], expected(X)[0], rtol=1e-5)
    arguments = ["--target", "c", "--executor", "aot", "--executor-aot-interface-api", "c"]
    assert main(["compile", small_onnx, "-o", str(tmp_path / "c.tar"), "-f", "mlf", *arguments]) == 0
    assert f"It is C code for your program: tar xf {tmp_path / 'c.tar'}" in capsys.readouterr().out
    with tarfile.open(tmp_path / "c.tar") as archive:
        assert "./codegen/host/src/default.c" in archive.getnames()


def test_options_of_executors_and_runtimes(small_onnx, tmp_path, capsys, expected):
    """Options that belong to the executor and to the runtime, as TVM's command line has them."""
    linked = ["--executor", "graph", "--executor-graph-link-params", "1", "--runtime", "cpp", "-f", "so"]
    assert main(["compile", small_onnx, "-o", str(tmp_path / "g.tar"), *linked]) == 0
    np.testing.assert_allclose(outputs_of(tmp_path / "g.tar", X)[0], expected(X)[0], rtol=1e-5)
    ahead = ["--target", "c", "--executor", "aot", "--executor-aot-unpacked-api", "1", "--runtime", "crt"]
    more = ["--executor-aot-interface-api", "c", "-f", "mlf"]
    assert main(["compile", small_onnx, "-o", str(tmp_path / "c.tar"), *ahead, *more]) == 0
    reported = capsys.readouterr().out
    assert "llvm -keys=cpu -link-params=1" in reported
    assert "c -keys=cpu -interface-api=c -unpacked-api=1" in reported
    with pytest.raises(SystemExit):
        main(["compile", small_onnx, "--executor-graph-link-params", "perhaps"])


def test_options_reach_the_compiler(small_onnx, tmp_path, capsys):
    """Target options, passes, layouts and names change what is made."""
    report = compiled(
        *(small_onnx, tmp_path / "m.tar", capsys, "-O", "1", "--module-name", "tiny"),
        *("--target", "llvm -num-cores=1", "--target-llvm-mcpu", "x86-64-v3"),
        *("--disabled-pass", "FoldConstant,AlterOpLayout", "--pass-config", "relay.FuseOps.max_depth=1"),
        *("--desired-layout", "NHWC"),
    )
    assert "-mcpu=x86-64-v3" in report["target"] and "-num-cores=1" in report["target"]
    found = tvmc.inspection.inspect_package(str(tmp_path / "m.tar"))
    assert found["name"] == "tiny"
    # Neither fused nor folded: the weight is transposed at run time.
    assert len(found["kernels"]) == 5
    assert all(name.startswith("tvmgen_tiny_") for name in found["kernels"])


def test_dumps_are_written_beside_the_output(small_onnx, tmp_path, capsys):
    """Each form that is named becomes a file."""
    report = compiled(small_onnx, tmp_path / "m.tar", capsys, "--dump-code", "relay,tir,ll,asm")
    assert [path.rpartition(".")[2] for path in report["dumped"]] == ["relay", "tir", "ll", "asm"]
    assert "nn.softmax" in (tmp_path / "m.relay").read_text()
    assert "def " in (tmp_path / "m.tir").read_text()
    assert "define " in (tmp_path / "m.ll").read_text()
    assert ".text" in (tmp_path / "m.asm").read_text()


def test_code_for_another_machine(small_onnx, tmp_path, capsys):
    """It is written, and refused where it cannot run; it cannot be validated on this machine either."""
    path = tmp_path / "arm.tar"
    arguments = ["compile", small_onnx, "-o", str(path), "-f", "tar", "--target"]
    other = "aarch64" if platform.machine() != "aarch64" else "x86_64"
    arguments.append(f"llvm -mtriple={other}-linux-gnu")
    assert main(arguments) == 0
    assert f"It is code for {other}-linux-gnu" in capsys.readouterr().out
    assert main(["inspect", str(path)]) == 0
    assert main(["run", str(path)]) == 2
    assert f"code for {other}-unknown-linux-gnu, not for this machine" in capsys.readouterr().err
    assert main([*arguments, "--validate"]) == 2
    assert "cannot run on this machine" in capsys.readouterr().err


def test_open_sizes_are_fixed_or_left_to_the_machine(open_onnx, tmp_path, capsys, expected):
    """The graph executor asks for shapes in the words to type; the virtual machine takes any batch, and is the one for
    models like this unless another is named."""
    path = tmp_path / "m.tar"
    assert main(["compile", open_onnx, "-o", str(path), "-f", "tar", "--executor", "graph"]) == 2
    assert '--input-shapes "x:[1,4]"' in capsys.readouterr().err
    compiled(open_onnx, path, capsys, "--input-shapes", "x:[2,4]")
    np.testing.assert_allclose(outputs_of(path, X)[0], expected(X)[0], rtol=1e-5)
    report = compiled(open_onnx, path, capsys)
    assert report["executor"] == "vm"
    assert report["inputs"][0]["shape"] == [None, 4]
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype("float32")
        np.testing.assert_allclose(outputs_of(path, x)[1], expected(x)[1], rtol=1e-5)


def test_validation_agrees(small_onnx, tmp_path, capsys):
    """Every output is compared with the reference, on random inputs and on those that are given."""
    np.savez(tmp_path / "in.npz", x=X)
    report = compiled(
        small_onnx, tmp_path / "m.tar", capsys, "--validate", "--validate-inputs", str(tmp_path / "in.npz")
    )
    found = report["validation"]
    assert found["agrees"] is True and found["inputs"] == 3 and found["first_difference"] is None
    beside = [one for one in found["outputs"] if one["peer"] == "reference executor"]
    assert [one["output"] for one in beside] == ["y", "p"]
    assert all(one["relative"] < 1e-5 and one["absolute"] < 1e-5 for one in beside)


def test_validation_finds_the_first_wrong_operator(small_onnx, tmp_path, capsys, monkeypatch):
    """Where compiled code and reference differ, the exit code is 1, and the operator and its node are named."""
    relu = Op.get("nn.relu")
    right = relu.get_attr("FTVMCompute")
    wrong = (lambda attrs, inputs, kind: [right(attrs, inputs, kind)[0] + 0.5], 10)
    monkeypatch.setitem(relu._attributes, "FTVMCompute", wrong)
    arguments = ["compile", small_onnx, "-o", str(tmp_path / "m.tar"), "-f", "tar", "--validate"]
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "DIFFERS" in printed
    assert "The first operator that is wrong is nn.relu (Relu clamp), of shape [2, 3]" in printed
    assert main([*arguments, "--tolerance", "10"]) == 0


def test_unsupported_operators_are_listed(tmp_path, small_onnx, capsys):
    """All of them in one table, and the exit code is 1; 0 where there are none."""
    graph = helper.make_graph(
        [
            helper.make_node("Fancy", ["x"], ["a"], name="one", domain="com.example"),
            helper.make_node("Plain", ["a"], ["y"], name="two", domain="com.example"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    path = str(tmp_path / "odd.onnx")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    assert main(["compile", path, "--list-unsupported", "--json"]) == 1
    assert [one["operator"] for one in json.loads(capsys.readouterr().out)] == ["Fancy", "Plain"]
    assert main(["compile", path, "--list-unsupported"]) == 1
    assert "com.example.Fancy" in capsys.readouterr().out
    assert main(["compile", small_onnx, "--list-unsupported"]) == 0
    assert "every operator" in capsys.readouterr().out
    assert main(["compile", path, "-o", str(tmp_path / "m.tar")]) == 2
    assert "com.example.Plain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "lvm"], "did you mean 'llvm'"),
        (["--target", "hexagon"], "no code generator for targets of kind 'hexagon'"),
        (["--target", "llvm -mcqu=x"], "did you mean 'mcpu'"),
        (["--target", "nothere.json"], "nothere.json cannot be read"),
        (["--target-c-mcpu", "x"], "did not specify c target; the target is llvm"),
        (["--target-llvm-mcpu", "i386x"], "i386x"),
        (["--input-shapes", "x"], "'x' is not a shape"),
        (["--input-shapes", "x:[a]"], "extents are integers"),
        (["--input-shapes", "z:[1]"], "the model has no input 'z'"),
        (["--input-shapes", "x:[2,5]"], "multiply"),
        (["--disabled-pass", "FoldConstants"], "did you mean 'FoldConstant'"),
        (["--pass-config", "nonsense=1"], "there is no pass option 'nonsense'"),
        (["--pass-config", "tir.disable_assert=maybe"], "must be true or false"),
        (["--dump-code", "pdf"], "not as 'pdf'"),
        (["--tuning-records", "r.json"], "there is no file r.json"),
        (["--cross-compiler-options=-O3"], "no cross compiler"),
        (["--cross-compiler", "no-such-compiler-here"], "no-such-compiler-here"),
        (["--executor-aot-interface-api", "c"], "--executor aot"),
        (["--executor-aot-unpacked-api", "1"], "is for --executor aot, not for graph"),
        (["--runtime", "crt", "--runtime-cpp-system-lib", "1"], "is for --runtime cpp, not for crt"),
        (
            ["--target", "cuda", "--executor-graph-link-params", "1"],
            "code for cuda cannot be made with link-params",
        ),
        (["--executor", "vm", "-f", "mlf"], "cannot be a model library"),
        (["--executor", "aot", "--executor-aot-interface-api", "c", "-f", "so"], "-f mlf"),
    ],
)
def test_wrong_values_are_explained(options, message, small_onnx, tmp_path, capsys):
    """The exit code is 2, the message names what is wrong, and nothing is written."""
    output = tmp_path / "m.tar"
    assert main(["compile", small_onnx, "-o", str(output), *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.startswith("tilewright: ")
    assert not output.exists() and "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.onnx", None, "there is no model"),
        ("bad.onnx", b"this is not a model at all", "bad.onnx"),
        ("empty.onnx", b"", "empty.onnx"),
        ("model.h5", b"x", "Keras"),
        (
            "model.xyz",
            b"x",
            "if it is one of these under another name, pass --model-format; other models",
        ),
        ("", None, "is a folder: name the model's file in it"),
        (
            "pointer.onnx",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
            "fetch it with 'git lfs pull'",
        ),
    ],
)
def test_files_that_are_no_models(name, content, message, tmp_path, capsys):
    """A file that is missing, damaged or of another format is named, with what to do."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert main(["compile", str(path), "-o", str(tmp_path / "m.tar")]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(small_onnx, tmp_path, capsys):
    """A file in the place of a folder is an error with its name, not a traceback."""
    (tmp_path / "file").write_text("")
    assert main(["compile", small_onnx, "-f", "tar", "-o", str(tmp_path / "file" / "m.tar")]) == 2
    assert (
        "m.tar cannot be written (its parent is a file, not a folder): choose another place with -o"
        in capsys.readouterr().err
    )
    assert main(["compile", small_onnx, "-f", "tar", "-o", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder: name a file with -o" in capsys.readouterr().err


def test_the_model_is_not_overwritten(small_onnx, tmp_path, capsys):
    """An output under the name of the model, or a link to it, is refused."""
    model = tmp_path / "model.onnx"
    model.write_bytes(Path(small_onnx).read_bytes())
    (tmp_path / "link.tar").symlink_to(model)
    for output in (model, tmp_path / "link.tar"):
        assert main(["compile", str(model), "-o", str(output)]) == 2
        assert "is an input and would be overwritten: choose another name with -o" in capsys.readouterr().err
    assert model.read_bytes() == Path(small_onnx).read_bytes()


def test_as_a_program(small_onnx, tmp_path):
    """``python -m tilewright compile`` and ``run`` work as processes, and say nothing on standard error."""
    output = tmp_path / "m.tar"
    for arguments in (
        ["compile", small_onnx, "-f", "tar", "-o", str(output)],
        ["run", str(output), "--json"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    assert json.loads(done.stdout)["outputs"][1]["shape"] == [2, 3]


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_explain_says_how_kernels_are_computed(executor, small_onnx, tmp_path, capsys):
    """For each kernel the row of the table that its operators have, and why the others were passed over."""
    path = tmp_path / "m.tar"
    options = ["-f", "tar", "--executor", executor, "--explain"]
    assert main(["compile", small_onnx, "-o", str(path), *options]) == 0
    printed = capsys.readouterr().out
    table = printed[: printed.index("compiled ")]
    assert "scheduler: cpu" in table and "taken " in table and "passed " in table
    assert max(len(line) for line in table.splitlines()) <= 80


def test_explain_as_json(small_onnx, tmp_path, capsys):
    """The same for programs; nothing of it without the option."""
    report = compiled(small_onnx, tmp_path / "m.tar", capsys, "--explain")
    operators = [one for kernel in report["kernel_choices"] for one in kernel["operators"]]
    assert operators and all(one["row"] and one["reason"] and one["scheduler"] for one in operators)
    assert "kernel_choices" not in compiled(small_onnx, tmp_path / "n.tar", capsys)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_indices_are_checked_on_request(executor, tmp_path, capsys):
    """With --check-indices the package fails and names the node; without, it takes the nearest element.

    Code that is compiled ahead of time has no messages: there a kernel fails, and no more is said.
    """
    aot = executor == "aot"
    text = (
        "a kernel of the model" if aot else r"Gather embedding \(take\): index 5 is out of range for axis 0"
    )
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="embedding")
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4]),
            helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    path = str(tmp_path / "gather.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    for options in ([], ["--check-indices"]):
        compiled(path, tmp_path / "m.tar", capsys, "--executor", executor, *options)
        package = tvmc.TVMCPackage(str(tmp_path / "m.tar"))
        inside = tvmc.run(package, "cpu", inputs={"x": X, "i": np.array([-2])}, repeat=1, number=1)
        np.testing.assert_array_equal(inside.outputs["output_0"], X[:1])
        outside = {"x": X, "i": np.array([5])}
        if not options:
            found = tvmc.run(package, "cpu", inputs=outside, repeat=1, number=1).outputs["output_0"]
            np.testing.assert_array_equal(found, X[1:])
        else:
            with pytest.raises(RuntimeError if aot else IndexError, match=text):
                tvmc.run(package, "cpu", inputs=outside, repeat=1, number=1)
