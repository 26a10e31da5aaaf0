"""Sizes of open dimensions and values of inputs, as users give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tilewright.driver.cli import main
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.input_options import dimensions_from_text, values_from_text, with_dimensions
from tilewright.driver.tvmc.open_inputs import OpenInputs
from tilewright.driver.tvmc.tensors import TensorInfo
from tilewright.relay.frontend.onnx.inputs import DeclaredInput, declared_inputs

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[batch, seq, 4] x, float[batch, seq, 4] m, int64 rate, float[2, batch] state) => (float[batch, seq, 4] y) {
    sixteen = Constant<value_int = 16000>()
    fast = Equal(rate, sixteen)
    z = Mul(x, m)
    y = If(fast) <
        then_branch = yes () => (float[a, b, c] t) { t = Add(z, z) },
        else_branch = no () => (float[a, b, c] e) { e = Neg(z) }
    >
}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The model in a file."""
    made = tmp_path / "model.onnx"
    made.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    return str(made)


def test_inputs_as_the_file_names_them(path: str) -> None:
    """Types, sizes and names."""
    found = declared_inputs(path)
    assert found["x"] == DeclaredInput("float32", ("batch", "seq", 4))
    assert found["rate"] == DeclaredInput("int64", ())


def test_sizes_by_name_and_by_place(path: str) -> None:
    """One name is one size in all inputs; a place wins where a dimension has no name."""
    declared = {**declared_inputs(path), "w": DeclaredInput("float32", (None, 3))}
    sizes = dimensions_from_text(["batch=1,seq=8", "w.0=5"])
    made = with_dimensions(declared, {"m": [9, 9, 4]}, sizes)
    assert made == {"x": [1, 8, 4], "m": [9, 9, 4], "state": [2, 1], "w": [5, 3]}
    with pytest.raises(TVMCException, match="no open dimension height; it has batch, seq"):
        with_dimensions(declared, {}, {"height": 3})


@pytest.mark.parametrize("text", ["batch", "batch=", "=3", "batch=x", "batch=-1", "batch=1,,"])
def test_sizes_that_are_none(text: str) -> None:
    """Names and numbers, nothing else."""
    with pytest.raises(TVMCException, match="--dim takes names and sizes"):
        dimensions_from_text([text])


def test_values() -> None:
    """In the type and shape of the input."""
    declared = {
        "n": DeclaredInput("int64", ()),
        "b": DeclaredInput("bool", (2,)),
        "f": DeclaredInput("float32", ("k",)),
        "u": DeclaredInput("uint8", ()),
    }
    found = values_from_text(declared, ["n=16000", "b=true,0", "f=1.5,2"])
    assert found["n"] == 16000 and found["n"].dtype == np.int64 and found["n"].shape == ()
    assert found["b"].tolist() == [True, False]
    assert found["f"].tolist() == [1.5, 2.0] and found["f"].dtype == np.float32
    for wrong in ("n=a", "n=1,2", "u=300", "u=-1", "b=2,1"):
        with pytest.raises(TVMCException, match="is not a value for the input"):
            values_from_text(declared, [wrong])
    with pytest.raises(TVMCException, match="the model has no input 'q'; it has n, b"):
        values_from_text(declared, ["q=1"])


def test_the_command_line(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With sizes and the value the model is static and has no branch; without, the machine runs it. Both are right."""
    for given, executor in ((["--dim", "batch=1,seq=8", "--input-value", "rate=16000"], "graph"), ([], "vm")):
        arguments = [
            "compile",
            path,
            "-o",
            str(tmp_path / "m.tar"),
            "-f",
            "tar",
            "--validate",
            "--json",
            *given,
        ]
        assert main(arguments) == 0
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert report["executor"] == executor and report["validation"]["agrees"]
    assert any("batch=1, seq=32; batch=2, seq=32" in note for note in report["validation"]["notes"])


def test_sizes_are_tried_until_the_model_runs() -> None:
    """A network for images of 48 rows."""
    infos = [TensorInfo("x", (None, 3, None, None), "float32"), TensorInfo("h", (2, None), "float32")]
    choices = OpenInputs({"x": ["n", 3, "h", "w"], "h": [2, "n"]}, {})

    def run(values: Any) -> tuple[int, ...]:
        if values["x"].shape[2] != 48:
            raise ValueError("48 rows")
        return values["x"].shape + values["h"].shape

    _, found = choices.tried(infos, np.random.default_rng(0), run, batch=2)
    assert found == (2, 3, 48, 48, 2, 2)

    def never(values: Any) -> None:
        raise ValueError("no")

    with pytest.raises(TVMCException, match="--dim n=SIZE,h=SIZE,w=SIZE"):
        choices.tried(infos, np.random.default_rng(0), never)
