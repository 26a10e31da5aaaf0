"""The command line as a function."""

import pytest

from tilewright.driver.tvmc import main as module


def test_commands_give_their_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown model is the user's error; ``main`` leaves the process with the code."""
    assert module._main(["compile", "there_is_no_such_model.onnx", "--target", "llvm"]) != 0
    assert "there_is_no_such_model" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["tvmc", "compile", "there_is_no_such_model.onnx", "--target", "llvm"])
    with pytest.raises(SystemExit) as left:
        module.main()
    assert left.value.code != 0
