"""Errors name options on the command line and arguments in Python."""

import pytest

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.support.wording import OPTIONS


def test_every_option_exists(capsys):
    """An option that a message names can be typed."""
    with pytest.raises(SystemExit):
        main(["compile", "--help"])
    said = capsys.readouterr().out.split()
    assert {
        option for option in OPTIONS.values() if not any(word.strip("[],") == option for word in said)
    } == set()


def test_each_caller_is_told_in_its_words(open_onnx, tmp_path, capsys):
    """A size that is not known is fixed by an option there and by an argument here."""
    assert main(["compile", open_onnx, "--executor", "graph", "-o", str(tmp_path / "m.tar")]) == 2
    said = capsys.readouterr().err
    assert '--input-shapes "x:[1,4]", or compile with --executor vm' in said and "shape_dict" not in said
    with pytest.raises(TVMCException, match=r"shape_dict=\{'x': \[1, 4\]\}, or compile with executor='vm'"):
        tvmc.compile(tvmc.load(open_onnx), "llvm")


def test_formats_that_contradict(small_onnx, tmp_path, capsys):
    """A path and a format."""
    assert main(["compile", small_onnx, "-o", str(tmp_path / "m.so"), "-f", "mlf"]) == 2
    assert "m.so is a shared library, but -f mlf is not" in capsys.readouterr().err
    with pytest.raises(TVMCException, match="but output_format='mlf' is not"):
        tvmc.compile(tvmc.load(small_onnx), "llvm", package_path="m.so", output_format="mlf")
