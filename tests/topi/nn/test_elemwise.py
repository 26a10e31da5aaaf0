"""Activations, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.topi.utils import InvalidShapeError

DATA = np.random.default_rng(53).standard_normal((2, 3, 4)).astype("float32")


def test_relu() -> None:
    """Negative numbers become zero, a NaN stays; integers work too."""
    data = np.array([-1.5, 0.0, 2.5, np.nan], "float32")
    np.testing.assert_array_equal(apply(topi.nn.relu, data), np.array([0, 0, 2.5, np.nan], "float32"))
    assert apply(topi.nn.relu, np.array([-3, 3], "int8")).tolist() == [0, 3]


def test_leaky_relu() -> None:
    """Negative numbers are scaled."""
    made = apply(topi.nn.leaky_relu, DATA, alpha=0.1)
    np.testing.assert_allclose(made, np.where(DATA > 0, DATA, DATA * np.float32(0.1)), rtol=1e-6)


@pytest.mark.parametrize("axis", [1, -1, 0])
def test_prelu(axis: int) -> None:
    """One slope for each index along an axis."""
    slope = np.linspace(0.1, 0.9, DATA.shape[axis]).astype("float32")
    shape = [1, 1, 1]
    shape[axis] = -1
    made = apply(topi.nn.prelu, DATA, slope, axis=axis)
    np.testing.assert_allclose(made, np.where(DATA > 0, DATA, DATA * slope.reshape(shape)), rtol=1e-6)


def test_tags_and_mistakes() -> None:
    """Element-wise and broadcasting; slopes must fit the axis."""
    data = te.placeholder((2, 3))
    assert topi.nn.relu(data).op.tag == "elemwise"
    assert topi.nn.prelu(data, te.placeholder((3,))).op.tag == "broadcast"
    with pytest.raises(InvalidShapeError, match="axis 1 has size 3"):
        topi.nn.prelu(data, te.placeholder((2,)))
    with pytest.raises(InvalidShapeError, match="axis 2"):
        topi.nn.prelu(data, te.placeholder((2,)), 2)
