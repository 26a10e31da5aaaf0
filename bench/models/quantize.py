"""Quantises one model: ``python quantize.py FOLDER RESULT`` writes a folder like FOLDER, with its model in int8.

ONNX Runtime's static quantiser writes it: signed weights with a scale per output channel, and activations with a zero
point, calibrated on random inputs like those that the model is timed on.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

CALIBRATION = 4
"""Inputs that the ranges of activations are taken from."""


class RandomInputs(CalibrationDataReader):
    """Inputs of the shapes and types of an example: noise for floats, the example's own numbers for integers."""

    def __init__(self, example: dict[str, Any]) -> None:
        generator = np.random.default_rng(11)

        def like(value: Any) -> Any:
            if value.dtype.kind != "f":
                return generator.permutation(value.reshape(-1)).reshape(value.shape)
            return generator.normal(value.mean(), value.std() + 1e-6, value.shape).astype(value.dtype)

        made = [{name: like(value) for name, value in example.items()} for _ in range(CALIBRATION)]
        self.inputs: Iterator[dict[str, Any]] = iter([example, *made])

    def get_next(self) -> dict[str, Any] | None:
        """The next input, until there are no more."""
        return next(self.inputs, None)


def quantize(folder: Path, result: Path, form: str, signed: bool) -> None:
    """Write the quantised model and what belongs to it; ``form`` is ``QDQ`` or ``QOperator``."""
    result.mkdir(parents=True, exist_ok=True)
    with np.load(folder / "inputs.npz") as found:
        example = dict(found)
    prepared = result / "prepared.onnx"
    # Symbolic shape inference needs a package of its own, and these models have constant shapes.
    quant_pre_process(str(folder / "model.onnx"), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(result / "model.onnx"),
        RandomInputs(example),
        quant_format=QuantFormat[form],
        activation_type=QuantType.QInt8 if signed else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    prepared.unlink()
    shutil.copy(folder / "inputs.npz", result)
    about = json.loads((folder / "about.json").read_text())
    (result / "about.json").write_text(json.dumps({**about, "quantized": form}))


if __name__ == "__main__":
    quantize(
        Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4] or ("QDQ",), signed="signed" in sys.argv[4:]
    )
