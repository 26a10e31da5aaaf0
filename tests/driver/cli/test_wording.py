"""Errors name options on the command line and arguments in Python."""

import pytest

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.driver.cli.wording import as_options


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("compile with executor='vm'.", "compile with --executor vm."),
        ("use output_format='tar', or", "use -f tar, or"),
        ("as in shape_dict={'x': [1, 4]}, or", 'as in --input-shapes "x:[1,4]", or'),
        ("as in shape={'a': [1, None], 'b': []}", 'as in --input-shapes "a:[1,?] b:[]"'),
        ("fix it with shape=", "fix it with --input-shapes"),
        ("give shape= with a list", "give --input-shapes with a list"),
        ("package_path='a b.tar'", "-o 'a b.tar'"),
        (
            "its shape=4 and my_executor='x' and --target=c stay",
            "its shape=4 and my_executor='x' and --target=c stay",
        ),
        ("shape={not python}", "shape={not python}"),
    ],
)
def test_arguments_become_options(message, expected):
    """Names, values and dictionaries of shapes; what only looks like an argument stays."""
    assert as_options(message) == expected


def test_each_caller_is_told_in_its_words(open_onnx, tmp_path, capsys):
    """A size that is not known is fixed by an option there and by an argument here."""
    assert main(["compile", open_onnx, "--executor", "graph", "-o", str(tmp_path / "m.tar")]) == 2
    said = capsys.readouterr().err
    assert '--input-shapes "x:[1,4]", or compile with --executor vm' in said and "shape_dict" not in said
    with pytest.raises(
        tvmc.TVMCException, match=r"shape_dict=\{'x': \[1, 4\]\}\), or compile with executor='vm'"
    ):
        tvmc.compile(tvmc.load(open_onnx), "llvm")


def test_formats_that_contradict(small_onnx, tmp_path, capsys):
    """A path and a format."""
    assert main(["compile", small_onnx, "-o", str(tmp_path / "m.so"), "-f", "mlf"]) == 2
    assert "m.so is a shared library, but -f mlf is not" in capsys.readouterr().err
    with pytest.raises(tvmc.TVMCException, match="but output_format='mlf' is not"):
        tvmc.compile(tvmc.load(small_onnx), "llvm", package_path="m.so", output_format="mlf")
