"""Simulated quantisation, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply, evaluate, inputs

from tilewright import te, topi
from tilewright.topi.nn.qnn import SQNN_DTYPE_TO_CODE
from tilewright.topi.utils import InvalidShapeError

DATA = (np.random.default_rng(83).standard_normal((2, 3, 4)) * 40).astype("float32")


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "disable"])
def test_the_type_is_chosen_while_the_program_runs(name: str) -> None:
    """One program for all types: it rounds and clips to the range of the type it is told."""
    code = np.array(SQNN_DTYPE_TO_CODE[name], "int32")
    feeds = inputs(DATA, code, np.float32(0.25), np.int32(3))
    data, kind, scale, zero = feeds
    made = evaluate(topi.nn.simulated_quantize(data, kind, scale, zero), feeds)
    expected = DATA
    if name != "disable":
        info = np.iinfo(name)
        expected = np.clip(np.floor(np.abs(DATA / 0.25) + 0.5) * np.sign(DATA) + 3, info.min, info.max)
    np.testing.assert_array_equal(made, expected.astype("float32"))
    back = evaluate(topi.nn.simulated_dequantize(data, kind, scale, zero), feeds)
    np.testing.assert_array_equal(back, DATA if name == "disable" else (DATA - 3) * np.float32(0.25))


def test_one_scale_for_each_channel() -> None:
    """Along an axis; the type may be a name."""
    scale = np.array([0.5, 1.0, 2.0], "float32")
    made = apply(
        lambda data, scales: topi.nn.simulated_quantize(data, "int8", scales, 0, axis=1), DATA, scale
    )
    quotient = DATA / scale.reshape(1, 3, 1)
    expected = np.clip(np.floor(np.abs(quotient) + 0.5) * np.sign(quotient), -128, 127)
    np.testing.assert_array_equal(made, expected)


def test_scales_of_many_dimensions_are_refused() -> None:
    """A scale is a number or one for each channel."""
    with pytest.raises(InvalidShapeError, match="at most one dimension"):
        topi.nn.simulated_quantize(te.placeholder((2, 2)), "int8", te.placeholder((2, 2)))
