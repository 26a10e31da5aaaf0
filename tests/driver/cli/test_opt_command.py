"""``tilewright opt``: passes on programs."""

import io
import json
from pathlib import Path

import pytest

from tilewright.driver.cli import main

GRAPH = "def @main(%x: Tensor[(4), float32]) { nn.dropout(nn.relu(add(%x, 1f))).0 }\n"
LOOPS = """
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, [8], dtype="float32")
    B = T.match_buffer(b, [8], dtype="float32")
    for i in T.vectorized(0, 8):
        B[i] = A[i] * T.float32(2)
"""


@pytest.fixture
def graph(tmp_path):
    """The path of a graph as text."""
    (tmp_path / "graph.txt").write_text(GRAPH)
    return str(tmp_path / "graph.txt")


@pytest.fixture
def loops(tmp_path):
    """The path of a script."""
    (tmp_path / "loops.py").write_text(LOOPS)
    return str(tmp_path / "loops.py")


def printed(capsys, *arguments):
    """What goes to standard output."""
    assert main(["opt", *arguments]) == 0
    return capsys.readouterr().out


def failed(capsys, *arguments):
    """What a user sees when a command cannot be done."""
    assert main(["opt", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_runs_passes_on_a_graph(graph, capsys):
    """The passes run in order, and the result can be read again."""
    text = printed(capsys, graph, "--passes", "SimplifyInference, FuseOps{level=2}", "--verify")
    assert text.startswith('#[version = "0.0.5"]\ndef @main(')
    assert "dropout" not in text and "Primitive=1" in text


def test_runs_passes_on_loops(loops, capsys):
    """A script is read by its content."""
    text = printed(capsys, loops, "-p", "FlattenBuffer, VectorizeLoop")
    assert "T.ramp(0, 1, 8)" in text and "for " not in text


def test_without_passes_the_program_is_printed(graph, capsys):
    """It is read, typed and printed."""
    assert "nn.dropout" in printed(capsys, graph)


def test_reads_standard_input(loops, graph, capsys, monkeypatch):
    """A pipe of two commands does what one does."""
    first = printed(capsys, graph, "-p", "SimplifyInference")
    monkeypatch.setattr("sys.stdin", io.StringIO(first))
    second = printed(capsys, "-", "-p", "FuseOps")
    assert second == printed(capsys, graph, "-p", "SimplifyInference, FuseOps")


def test_writes_a_file(graph, tmp_path, capsys):
    """With -o nothing is printed; the input is never overwritten."""
    output = str(tmp_path / "out" / "made.txt")
    assert printed(capsys, graph, "-p", "SimplifyInference", "-o", output) == ""
    assert printed(capsys, output) == printed(capsys, graph, "-p", "SimplifyInference")
    assert "would be overwritten" in failed(capsys, graph, "-o", graph)


def test_models_are_imported(small_onnx, capsys):
    """A model goes through the compiler's own pipelines."""
    target = "llvm -mcpu=skylake-avx512"
    text = printed(capsys, small_onnx, "--pipeline", "prepare", "--pipeline", "fuse", "--target", target)
    assert "Primitive=1" in text and "nn.softmax" in text


def test_pipelines_print_as_passes(graph, loops, capsys):
    """What is printed can be given back and does the same."""
    for file, name in ((graph, "prepare"), (loops, "lower"), (loops, "host")):
        arguments = [] if name != "host" else ["-p", "FlattenBuffer"]
        program = printed(capsys, file, *arguments)
        passes = printed(capsys, "--pipeline", name, "--print-pipeline", "--target", "llvm -mcpu=skylake")
        assert all(line.endswith(",") for line in passes.splitlines()[:-1])
        path, source = Path(file).with_name("passes"), Path(file).with_name("source.txt")
        path.write_text(passes)
        source.write_text(program)
        by_text = printed(capsys, str(source), "-p", f"@{path}", "--target", "llvm -mcpu=skylake")
        by_name = printed(capsys, str(source), "--pipeline", name, "--target", "llvm -mcpu=skylake")
        assert by_text == by_name != program


def test_what_happens_is_shown_on_standard_error(graph, capsys):
    """Programs before and after, or what changes; the result alone goes to standard output."""
    passes = ["-p", "FoldConstant, SimplifyInference"]
    plain = printed(capsys, graph, *passes)
    for option, expected in (
        ("--print-before-all", ["# before FoldConstant", "# before SimplifyInference"]),
        ("--print-after-all", ["# after FoldConstant", "# after SimplifyInference"]),
        ("--print-changed", ["# SimplifyInference"]),
    ):
        assert main(["opt", graph, *passes, option]) == 0
        captured = capsys.readouterr()
        assert captured.out == plain
        assert [line for line in captured.err.splitlines() if line.startswith("# ")] == expected


def test_passes_are_listed(capsys):
    """For people and for programs."""
    text = printed(capsys, "--list-passes")
    assert "Passes on graphs (Relay)\n" in text and "  tir.VectorizeLoop{enable_vectorize=true}\n" in text
    listed = {one["name"]: one for one in json.loads(printed(capsys, "--list-passes", "--json"))}
    assert listed["FuseOps"]["options"] == {"fuse_opt_level": "-1", "views": "false"}
    assert listed["tir.ThreadSync"]["options"] == {"storage_scope": None}


def test_levels_and_options_of_the_context(loops, capsys):
    """Passes see --opt-level and --pass-config."""
    text = printed(capsys, "--pipeline", "prepare", "--print-pipeline", "-O", "1")
    assert "FoldConstant" not in text and "SimplifyInference" in text
    text = printed(capsys, loops, "--pipeline", "lower", "--pass-config", "tir.disable_vectorize=true")
    assert "for i in T.serial(8)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "FuseOp"], "there is no pass 'FuseOp'; did you mean 'FuseOps'?\n  FuseOp\n  ^^^^^^\n"),
        (["-p", "tir.Simplify"], "pass tir.Simplify runs on loops, and the program is a graph"),
        (["-p", "PartialEvaluate{", "-O", "2"], "expected an option of PartialEvaluate"),
        (["--target", "nonsense"], "'nonsense' is not a kind of target"),
        (["--pass-config", "x=1"], "there is no pass option 'x'"),
    ],
)
def test_errors(graph, capsys, arguments, message):
    """Each is one message that says what to change."""
    error = failed(capsys, graph, *arguments)
    assert error.startswith("tilewright: ") and message in error


def test_errors_of_files(tmp_path, loops, capsys):
    """Files that are not there, and programs of the other level."""
    assert failed(capsys, str(tmp_path / "none.txt")).startswith("tilewright: there is no file ")
    assert "is a folder" in failed(capsys, str(tmp_path))
    assert "name the file with the program" in failed(capsys)
    assert "pass FuseOps runs on graphs" in failed(capsys, loops, "-p", "FuseOps")


def test_a_pass_that_refuses_is_named(loops, capsys):
    """The message of a pass says which pass it is from."""
    error = failed(capsys, loops, "-p", "FlattenBuffer, HoistIfThenElse{variant=other}")
    assert error.startswith(
        "tilewright: pass tir.HoistIfThenElse{variant=other}: HoistIfThenElse has the variants"
    )


def test_errors_in_a_program_show_the_line(tmp_path, capsys):
    """A program that cannot be read is shown with a caret."""
    (tmp_path / "wrong.txt").write_text("def @main(%x: Tensor[(4), float32]) { nn.rely(%x) }")
    error = failed(capsys, str(tmp_path / "wrong.txt"))
    assert error.count("wrong.txt:1:39") == 1 and error.count("^^^^^^^") == 1
