"""Fourier transforms give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, check_like_onnx_runtime, node_model, run

from tilewright.support.errors import ModelError


def parts(values: Any) -> Any:
    """Complex numbers as their parts."""
    return np.stack([values.real, values.imag], axis=-1).astype("float32")


def scalar(value: int) -> Any:
    """A scalar of int64."""
    return np.array(value, "int64")


@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_transform_of_real_signals(length: int | None, axis: int) -> None:
    """Whole and one-sided, cut and padded, along any axis."""
    data = floats(6, 8, 1)
    inputs = {"x": data, "length": None if length is None else scalar(length), "axis": scalar(axis)}
    stored = {name: value for name, value in inputs.items() if name != "x" and value is not None}
    along = axis if axis >= 0 else axis + 3
    whole = np.fft.fft(data[..., 0], n=length, axis=along)
    assert_close(
        run(node_model("DFT", inputs, opset=20, constants=stored), inputs), [parts(whole)], atol=1e-4
    )
    half = np.fft.rfft(data[..., 0], n=length, axis=along)
    model = node_model("DFT", inputs, opset=20, constants=stored, onesided=1)
    assert_close(run(model, inputs), [parts(half)], atol=1e-4)


@pytest.mark.parametrize("length", [7, 8])
def test_there_and_back(length: int) -> None:
    """The inverse of a transform, of complex signals and of one-sided spectra of odd and even length."""
    signal = floats(3, length, 2)
    values = signal[..., 0] + 1j * signal[..., 1]
    spectrum = {"x": parts(np.fft.fft(values, axis=1))}
    assert_close(run(node_model("DFT", spectrum, opset=20, inverse=1), spectrum), [signal], atol=1e-4)
    half = {"x": parts(np.fft.rfft(signal[..., 0], axis=1)), "n": scalar(length)}
    model = node_model("DFT", half, opset=20, constants={"n": half["n"]}, inverse=1, onesided=1)
    assert_close(run(model, half), [signal[..., :1]], atol=1e-4)


def test_frames() -> None:
    """Frames of a signal of any length, weighted by a window."""
    data, window = floats(2, 64, 1), np.hanning(16).astype("float32")
    inputs = {"x": data, "step": scalar(8), "window": window, "length": scalar(16)}
    check_like_onnx_runtime(
        "STFT", inputs, opset=17, constants=["step", "window", "length"], rtol=1e-3, onesided=1
    )


def test_a_long_transform_is_refused() -> None:
    """Before its matrices are made."""
    inputs = {"x": floats(1, 4, 1), "n": scalar(1 << 40)}
    with pytest.raises(ModelError, match="is not possible"):
        run(
            node_model("DFT", inputs | {"x": floats(1, 1 << 10, 1)}, opset=20, constants={"n": inputs["n"]}),
            inputs,
        )


def test_mel_filters() -> None:
    """Triangles over the spectrum: each filter rises to one and falls, and their centres grow."""
    values = {
        "bins": scalar(6),
        "length": scalar(64),
        "rate": scalar(8000),
        "low": np.array(0.0, "float32"),
        "high": np.array(4000.0, "float32"),
    }
    check_like_onnx_runtime("MelWeightMatrix", values, opset=17, constants=list(values), unknown=False)
