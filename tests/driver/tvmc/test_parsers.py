"""The commands of tvmc under their own names, for programs that build their own command line."""

import argparse

import pytest

from tilewright.driver.tvmc import TVMCPackage, autotuner, compiler, runner


@pytest.fixture
def parser():
    """A parser with the three commands."""
    made = argparse.ArgumentParser()
    commands = made.add_subparsers()
    compiler.add_compile_parser(commands)
    runner.add_run_parser(commands)
    autotuner.add_tune_parser(commands)
    return made


def test_compile_then_run(parser, small_onnx, tmp_path):
    """The functions that the parsers name do what the commands do."""
    package, output = tmp_path / "m.tar", tmp_path / "out.npz"
    arguments = parser.parse_args(
        ["compile", small_onnx, "-o", str(package), "-f", "tar", "--dump-code", "relay"]
    )
    assert arguments.func(arguments) == 0
    assert TVMCPackage(str(package)).executor_type == "graph" and (tmp_path / "m.tar.relay").exists()
    arguments = parser.parse_args(["run", str(package), "-o", str(output), "--fill-mode", "ones"])
    assert arguments.func(arguments) == 0 and output.exists()
