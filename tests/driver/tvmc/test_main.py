"""The command line as a function."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.cli import main as run_command
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


def test_tune_has_the_options_of_tvmc(
    small_onnx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AutoScheduler writes records; an error of the program gives an exit code and its message."""
    records = tmp_path / "records.json"
    options = ["--target", "llvm", "--trials", "1", "--enable-autoscheduler", "--output", str(records)]
    assert module._main(["tune", *options, str(small_onnx)]) == 0
    assert "llvm" in records.read_text()
    assert module._main(["tune", *options, "there_is_no_such_model.onnx"]) == 1
    assert "there_is_no_such_model" in capsys.readouterr().err


def test_outputs_in_files_have_the_names_of_tvmc(small_onnx: Path, tmp_path: Path) -> None:
    """Programs for it read ``output_0``; elsewhere the file has the model's names."""
    package, outputs = tmp_path / "model.tar", tmp_path / "outputs.npz"
    assert module._main(["compile", str(small_onnx), "--target", "llvm", "-o", str(package)]) == 0
    assert module._main(["run", str(package), "-o", str(outputs)]) == 0
    with np.load(outputs) as found:
        assert found.files == ["output_0", "output_1"]
    assert run_command(["run", str(package), "-o", str(outputs)]) == 0
    with np.load(outputs) as found:
        assert len(found.files) == 2 and "output_0" not in found.files
