"""Messages in the words of the caller."""

import pytest

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.tensors import TensorInfo, require_static
from tilewright.support.wording import command_line, in_words_of_the_caller


def test_python_is_the_default_and_comes_back():
    """Only what runs in the block was called from the command line."""
    assert in_words_of_the_caller("--flag", "argument") == "argument"
    with command_line():
        assert in_words_of_the_caller("--flag", "argument") == "--flag"
    assert in_words_of_the_caller("--flag", "argument") == "argument"


def test_a_format_is_asked_for_as_the_caller_gives_it(tmp_path, capsys):
    """A flag to one who typed a command, an argument to one who called a function."""
    path = tmp_path / "model.strange"
    path.write_text("hello")
    assert main(["compile", str(path)]) == 2
    assert "pass --model-format" in capsys.readouterr().err
    with pytest.raises(TVMCException, match="pass model_format"):
        tvmc.load(str(path))


def test_open_shapes_are_asked_for_as_the_caller_gives_them():
    """The advice can be copied."""
    unknown = [TensorInfo("x", (None, 3), "float32")]
    with pytest.raises(TVMCException, match=r"shape_dict=\{'x': \[1, 3\]\}\), or compile with executor='vm'"):
        require_static(unknown, "graph")
    with (
        command_line(),
        pytest.raises(TVMCException, match=r'--input-shapes "x:\[1,3\]", or .* --executor vm'),
    ):
        require_static(unknown, "graph")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "FOLDER"], "is a folder"),
        (["compile", "FOLDER"], "is a folder"),
        (["inspect", "EMPTY.onnx"], "is empty"),
        (["profile", "TEXT.onnx"], "is not an ONNX model"),
        (["run", "TEXT.tar"], "is not a readable tar archive"),
        (["opt", "MISSING.onnx"], "there is no file"),
        (["run", "MISSING.tar"], "there is no package"),
        (["compile", "EMPTY.onnx", "--module-name", "9 x"], "--module-name is a prefix"),
    ],
)
def test_wrong_files_are_one_message(arguments, message, tmp_path, monkeypatch, capsys):
    """A folder, an empty file, a text, nothing: one line with the file's name, exit code 2, and no traceback."""
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "EMPTY.onnx").touch()
    for name in ("TEXT.onnx", "TEXT.tar"):
        (tmp_path / name).write_text("hello")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1
    assert message in captured.err and (arguments[1] in captured.err or len(arguments) > 2)
