"""Quantises one model: ``python quantize.py FOLDER RESULT`` writes a folder like FOLDER, with its model in int8.

ONNX Runtime's static quantiser writes it, or with ``tilewright`` behind the form ``tilewright quantize``: signed
weights with a scale per output channel (one per tensor with ``per-tensor``), and activations with a zero point,
calibrated on random inputs like those that the model is timed on. All layers are quantised, whatever that costs:
weights and inputs are random.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
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


def quantize(folder: Path, result: Path, form: str, kinds: Sequence[str]) -> None:
    """Write the quantised model and what belongs to it; ``form`` is ``QDQ`` or ``QOperator``."""
    by = "tilewright" if "tilewright" in kinds else "onnxruntime"
    result.mkdir(parents=True, exist_ok=True)
    with np.load(folder / "inputs.npz") as found:
        example = dict(found)
    if by == "tilewright":
        quantize_here(folder / "model.onnx", result, example, "signed" in kinds)
    else:
        quantize_by_onnxruntime(folder / "model.onnx", result, example, form, kinds)
    shutil.copy(folder / "inputs.npz", result)
    about = json.loads((folder / "about.json").read_text())
    (result / "about.json").write_text(json.dumps({**about, "quantized": form, "by": by}))


def quantize_here(model: Path, result: Path, example: dict[str, Any], signed: bool) -> None:
    """As a user does it on the command line; the compiled model is not used."""
    samples = list(iter(RandomInputs(example).inputs))
    data, package = result / "samples.npz", result / "package.tar"
    np.savez(data, **{name: np.concatenate([one[name] for one in samples]) for name in example})
    command = [sys.executable, "-m", "tilewright", "quantize", str(model), "--data", str(data)]
    command += ["--budget", "100%", "-o", str(package), "--onnx", str(result / "model.onnx")]
    subprocess.run([*command, *(["--symmetric"] if signed else [])], check=True, stdout=sys.stderr)
    data.unlink()
    package.unlink()


def quantize_by_onnxruntime(
    model: Path, result: Path, example: dict[str, Any], form: str, kinds: Sequence[str]
) -> None:
    """By ONNX Runtime's static quantiser."""
    prepared = result / "prepared.onnx"
    # Symbolic shape inference needs a package of its own, and these models have constant shapes.
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(result / "model.onnx"),
        RandomInputs(example),
        quant_format=QuantFormat[form],
        activation_type=QuantType.QInt8 if "signed" in kinds else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel="per-tensor" not in kinds,
    )
    prepared.unlink()


if __name__ == "__main__":
    quantize(Path(sys.argv[1]), Path(sys.argv[2]), (sys.argv[3:4] or ["QDQ"])[0], sys.argv[4:])
