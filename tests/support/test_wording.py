"""Messages in the words of the caller."""

import pytest

from tilewright.driver import tvmc
from tilewright.driver.cli import main
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.support.wording import argument, command_line


@pytest.mark.parametrize(
    ("name", "value", "in_python", "typed"),
    [
        ("executor", "vm", "executor='vm'", "--executor vm"),
        ("package_path", "a b.tar", "package_path='a b.tar'", "-o 'a b.tar'"),
        ("shape_dict", {"x": [1, 4]}, "shape_dict={'x': [1, 4]}", '--input-shapes "x:[1,4]"'),
        (
            "shape",
            {"a": [1, None], "b": []},
            "shape={'a': [1, None], 'b': []}",
            '--input-shapes "a:[1,?] b:[]"',
        ),
        ("model_format", None, "model_format", "--model-format"),
    ],
)
def test_an_argument_as_the_caller_writes_it(name, value, in_python, typed):
    """Only what runs in the block was called from the command line."""
    assert argument(name, value) == in_python
    with command_line():
        assert argument(name, value) == typed
    assert argument(name, value) == in_python


def test_a_format_is_asked_for_as_the_caller_gives_it(tmp_path, capsys):
    """A flag to one who typed a command, an argument to one who called a function."""
    path = tmp_path / "model.strange"
    path.write_text("hello")
    assert main(["compile", str(path)]) == 2
    assert "pass --model-format" in capsys.readouterr().err
    with pytest.raises(TVMCException, match="pass model_format"):
        tvmc.load(str(path))


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
