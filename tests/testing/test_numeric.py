"""Comparing numbers."""

import numpy as np
import pytest

from tilewright.runtime import ndarray as nd
from tilewright.testing import assert_allclose, check_numerical_grads


def test_allclose() -> None:
    """Arrays of the runtime and of NumPy compare within the tolerance; shapes must be the same."""
    values = np.array([1.0, 2.0], "float32")
    assert_allclose(nd.array(values), [1.0, 2.0])
    assert_allclose(values, values + 1e-3, rtol=1e-2)
    with pytest.raises(AssertionError):
        assert_allclose(values, values + 1e-3)
    with pytest.raises(AssertionError, match=r"shapes differ: \(2,\) came, \(1, 2\)"):
        assert_allclose(values, values[None])


def test_gradients() -> None:
    """Right gradients pass, by position and by name; wrong ones and those of another shape do not."""
    x, y = np.array([0.5, 2.0]), np.array([1.5, -1.0])

    def function(x: object, y: object) -> object:
        return np.sin(x) * y  # type: ignore[operator]

    gradients = [np.cos(x) * y, np.sin(x)]
    check_numerical_grads(function, [x, y], gradients, function_value=np.sum(np.sin(x) * y))
    check_numerical_grads(function, {"x": x, "y": y}, dict(zip("xy", gradients, strict=True)))
    with pytest.raises(AssertionError, match="the gradient of 1 is off"):
        check_numerical_grads(function, [x, y], [gradients[0], gradients[1] + 1])
    with pytest.raises(AssertionError, match="has shape"):
        check_numerical_grads(function, [x, y], [gradients[0][:1], gradients[1]])
    with pytest.raises(AssertionError, match="not finite"):
        check_numerical_grads(function, [x, y], [gradients[0] * np.nan, gradients[1]])
    with pytest.raises(AssertionError):
        check_numerical_grads(function, [x, y], gradients, function_value=100.0)
