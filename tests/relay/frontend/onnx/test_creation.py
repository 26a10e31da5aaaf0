"""Tensors made of nothing, or of a shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx.models import node_model, run

from tilewright.relay.expr import Constant
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError


def constant(**attributes: Any) -> Any:
    """The value of a Constant node."""
    return run(node_model("Constant", {}, opset=13, **attributes), {})[0]


def test_constants_of_every_kind() -> None:
    """One number, several, a tensor, a sparse tensor in both forms of indices."""
    assert constant(value_float=1.5) == np.float32(1.5)
    assert constant(value_int=7).dtype == np.int64
    np.testing.assert_array_equal(constant(value_ints=[1, 2]), [1, 2])
    np.testing.assert_array_equal(constant(value_floats=[0.5]), np.asarray([0.5], "float32"))
    values = onnx.numpy_helper.from_array(np.asarray([5.0, 6.0], "float32"), "values")
    for indices in (np.asarray([1, 5], "int64"), np.asarray([[0, 1], [1, 2]], "int64")):
        places = onnx.numpy_helper.from_array(indices, "indices")
        sparse = onnx.helper.make_sparse_tensor(values, places, [2, 3])
        np.testing.assert_array_equal(constant(sparse_value=sparse), [[0, 5, 0], [0, 0, 6]])
    with pytest.raises(ModelError, match="strings"):
        constant(value_string="no")


def test_a_known_range_is_a_constant() -> None:
    """A range of known numbers is computed now; another one when the program runs."""
    inputs = {"start": np.int64(10), "limit": np.int64(3), "delta": np.int64(-3)}
    model = node_model("Range", inputs, constants=inputs)
    body = from_onnx(model)[0]["main"].body
    assert isinstance(body, Constant)
    np.testing.assert_array_equal(body.data.numpy(), [10, 7, 4])
    np.testing.assert_array_equal(run(node_model("Range", inputs), inputs)[0], [10, 7, 4])
    zero = {**inputs, "delta": np.int64(0)}
    with pytest.raises(ModelError, match="step is zero"):
        from_onnx(node_model("Range", zero, constants=zero))


def test_ranges_of_floats_count_as_the_standard_does() -> None:
    """ceil((limit - start) / delta) numbers."""
    inputs = {"start": np.float32(1), "limit": np.float32(2), "delta": np.float32(0.3)}
    for constants in (inputs, {}):
        found = run(node_model("Range", inputs, constants=constants), inputs)[0]
        np.testing.assert_allclose(found, [1, 1.3, 1.6, 1.9], rtol=1e-6)


def test_one_value_in_a_shape() -> None:
    """The shape may be known now, or only when the program runs; without a value there are zeros of float32."""
    shape = np.asarray([2, 0, 3], "int64")
    for constants in ({"shape": shape}, {}):
        found = run(node_model("ConstantOfShape", {"shape": shape}, constants=constants), {"shape": shape})[0]
        assert found.shape == (2, 0, 3)
        assert found.dtype == np.float32
    value = onnx.numpy_helper.from_array(np.asarray([7], "int16"))
    shape = np.asarray([2], "int64")
    found = run(node_model("ConstantOfShape", {"shape": shape}, value=value), {"shape": shape})[0]
    np.testing.assert_array_equal(found, np.asarray([7, 7], "int16"))


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_diagonals(unknown: bool, offset: int) -> None:
    """Ones on a diagonal, of matrices of known and of unknown size."""
    given = np.zeros((3, 4), "float32")
    model = node_model("EyeLike", {"x": given}, unknown=unknown, k=offset)
    np.testing.assert_array_equal(run(model, {"x": given})[0], np.eye(3, 4, offset))
