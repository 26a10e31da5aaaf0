"""Functions on another library's tensors."""

from typing import Any

import numpy as np
import pytest

from tilewright.contrib.dlpack import convert_func, to_pytorch_func
from tilewright.runtime import NDArray, convert_to_tvm_func
from tilewright.runtime import ndarray as nd

torch = pytest.importorskip("torch")


def test_pytorch_function() -> None:
    """Tensors go in without a copy, other arguments as they are, and an array comes back as a tensor."""

    def scale(array: NDArray, factor: float) -> NDArray:
        np.from_dlpack(array)[:] *= factor
        return array

    tensor = torch.ones(3, requires_grad=True)
    result = to_pytorch_func(convert_to_tvm_func(scale))(tensor, 3.0)
    assert isinstance(result, torch.Tensor)
    assert result.data_ptr() == tensor.data_ptr() and tensor.tolist() == [3, 3, 3]
    assert to_pytorch_func(lambda x: x + 1)(4) == 5


def test_own_tensor_type() -> None:
    """A library with a conversion of its own is served by it."""

    class Own:
        def __init__(self, values: Any) -> None:
            self.values = values

    double = convert_func(lambda array: array.numpy() * 2, Own, lambda own: own.values.__dlpack__())
    assert double(Own(np.arange(3.0))).tolist() == [0, 2, 4]
    assert double(nd.array([5.0])).tolist() == [10]
    with pytest.raises(TypeError, match="expected a function"):
        convert_func(3, Own, lambda own: own)  # type: ignore[arg-type]
