"""The script that trained the demo's network still makes such a network."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver import tvmc

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_digits.py"


def test_it_trains_and_writes_a_model(tmp_path, capsys, monkeypatch):
    """A few epochs are enough to be right far more often than by chance, and the model compiles."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "EPOCHS", 2)
    script.main(tmp_path)
    assert "40,506 parameters" in capsys.readouterr().out
    package = tvmc.compile(tvmc.load(str(tmp_path / "digits.onnx")), "llvm", output_format="tar")
    with np.load(tmp_path / "digits.npz") as stored:
        images, labels = stored["image"], stored["label"]
    right = 0
    for image, label in zip(images, labels, strict=True):
        found = tvmc.run(package, "cpu", inputs={"image": image[None]}, repeat=1, number=1)
        right += int(found.get_output("output_0").argmax() == label)
    assert right >= 5
