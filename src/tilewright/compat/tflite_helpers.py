"""The functions of TVM's ``relay.frontend.tflite`` beside its converter."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.relay.expr import Constant
from tilewright.relay.frontend.tflite.flatbuffer import Table
from tilewright.relay.frontend.tflite.sparsity import dense_values

__all__ = [
    "build_str_map",
    "get_pad_value",
    "get_scalar_from_constant",
    "get_tensor_from_constant",
    "get_tensor_name",
    "prepare_dense_matrix_from_sparse",
]


def get_scalar_from_constant(expr: Any) -> Any:
    """The number that a constant of one element is."""
    value = get_tensor_from_constant(expr)
    if value.ndim:
        raise ValueError(f"expected a scalar, and the constant has the shape {value.shape}")
    return value.item()


def get_tensor_from_constant(expr: Any) -> np.ndarray[Any, Any]:
    """The value of a constant."""
    if not isinstance(expr, Constant):
        raise ValueError(f"expected a constant, not a {type(expr).__name__}")
    value: np.ndarray[Any, Any] = expr.data.numpy()
    return value


def build_str_map(obj: Any) -> dict[int, str]:
    """The names of an enumeration by number: of the attributes of a class that are integers."""
    found = {name: getattr(obj, name) for name in dir(obj) if not name.startswith("_")}
    return {value: name for name, value in found.items() if isinstance(value, int)}


def get_pad_value(data: int, kernel: int, stride: int) -> tuple[int, int]:
    """The padding before and after an axis such that the output has ``ceil(data / stride)`` places."""
    places = -(-data // stride)
    total = max(0, (places - 1) * stride + kernel - data)
    return total // 2, total - total // 2


def get_tensor_name(subgraph: Any, tensor_idx: int) -> str:
    """The name of a tensor of a graph: of this version's, or of the ``tflite`` package's."""
    if hasattr(subgraph, "Tensors"):
        name: str = subgraph.Tensors(tensor_idx).Name().decode("utf-8")
        return name
    return str(subgraph.tensors[tensor_idx].name)


def prepare_dense_matrix_from_sparse(
    sparse_tensor: Any, sparse_tensor_value: Any, sparse_tensor_type: Any
) -> np.ndarray[Any, Any]:
    """All elements of a sparse tensor of the ``tflite`` package, from the values that are stored."""
    table = sparse_tensor.Sparsity()._tab
    name, shape = sparse_tensor.Name().decode("utf-8"), tuple(map(int, sparse_tensor.ShapeAsNumpy()))
    stored = np.asarray(sparse_tensor_value, sparse_tensor_type).reshape(-1)
    return dense_values(name, stored, shape, Table(memoryview(table.Bytes), table.Pos))
