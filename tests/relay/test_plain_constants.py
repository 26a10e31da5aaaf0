"""The types of ``relay.const``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([1.5, 2.5]), "float32"),
        (np.float64(0.5), "float32"),
        (np.array([[1, -2]]), "int32"),
        (np.zeros((0, 2), "int64"), "int32"),
        (np.array([1 << 40]), "int64"),
        (np.array([1, 2], "float16"), "float16"),
        (np.array([1, 2], "uint8"), "uint8"),
        (3, "int32"),
        ([1.0, 2.0], "float32"),
    ],
)
def test_without_a_type(value: Any, dtype: str) -> None:
    """64-bit numbers become 32-bit ones, as in TVM; integers that do not fit stay, and so do other types."""
    made = relay.const(value)
    assert made.data.dtype == dtype
    np.testing.assert_array_equal(made.data.numpy(), np.asarray(value))


def test_with_a_type() -> None:
    """A type that is given is taken, and an array of the runtime keeps its own."""
    assert relay.const(np.array([1.0]), "float64").data.dtype == "float64"
    assert relay.const(tvm.nd.array(np.array([1.0]))).data.dtype == "float64"
