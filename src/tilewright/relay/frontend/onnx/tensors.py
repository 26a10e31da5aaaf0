"""Tensors and attributes of a model as NumPy arrays and Python values."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright.relay.frontend.onnx.low_precision import LOW_PRECISION_TYPES, to_carrier
from tilewright.support.dtype import DataType
from tilewright.support.errors import ModelError


def onnx_package() -> Any:
    """The ``onnx`` package."""
    try:
        import onnx
    except ImportError as missing:
        raise ModelError("reading ONNX models needs the onnx package: pip install onnx") from missing
    return onnx


def dtype_name(element_type: int) -> str:
    """The name of an ONNX element type: "float32", "int64", ... ; that of the carrier for low-precision types; an error
    for strings and the like."""
    if element_type in LOW_PRECISION_TYPES:
        return LOW_PRECISION_TYPES[element_type].carrier
    onnx = onnx_package()
    names = {
        onnx.TensorProto.FLOAT: "float32",
        onnx.TensorProto.DOUBLE: "float64",
        onnx.TensorProto.FLOAT16: "float16",
        onnx.TensorProto.BFLOAT16: "bfloat16",
        onnx.TensorProto.INT8: "int8",
        onnx.TensorProto.INT16: "int16",
        onnx.TensorProto.INT32: "int32",
        onnx.TensorProto.INT64: "int64",
        onnx.TensorProto.UINT8: "uint8",
        onnx.TensorProto.UINT16: "uint16",
        onnx.TensorProto.UINT32: "uint32",
        onnx.TensorProto.UINT64: "uint64",
        onnx.TensorProto.BOOL: "bool",
    }
    found = names.get(element_type)
    if found is None:
        known = onnx.TensorProto.DataType.items()
        label = next((name for name, number in known if number == element_type), str(element_type))
        raise ModelError(f"tensors of element type {label} are not supported")
    return found


LARGEST_CONSTANT = 1 << 32
"""Bytes: a model that stores little and says that it is more than so much is refused."""
_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def _element_bits(element_type: int) -> int:
    low_precision = LOW_PRECISION_TYPES.get(element_type)
    return (
        low_precision.bits if low_precision is not None else 8 * DataType(dtype_name(element_type)).itemsize
    )


def stored_bytes(tensor: Any) -> int:
    """How many bytes the elements of a tensor take as raw data; an error for a shape that no tensor has."""
    if any(extent < 0 for extent in tensor.dims):
        raise ModelError(f"tensor {tensor.name!r} has the shape {list(tensor.dims)}")
    return -(-int(prod(tensor.dims)) * _element_bits(tensor.data_type) // 8)


def checked_shape(tensor: Any, length: int) -> tuple[int, ...]:
    """The shape of a tensor whose raw data have so many bytes; an error where they do not fit, before anything is
    allocated."""
    expected = stored_bytes(tensor)
    if length != expected:
        raise ModelError(
            f"tensor {tensor.name!r} of the shape {list(tensor.dims)} needs {expected} bytes, and has {length}"
        )
    return tuple(tensor.dims)


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The value of a TensorProto that holds its data, the carrier for low-precision types."""
    onnx = onnx_package()
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ModelError(f"tensor {tensor.name!r} has its data in a file: load the model by its path")
    if tensor.HasField("raw_data"):
        checked_shape(tensor, len(tensor.raw_data))
    else:
        _check_count(tensor)
    try:
        found = np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"tensor {tensor.name!r} is damaged: {error}") from error
    low_precision = LOW_PRECISION_TYPES.get(tensor.data_type)
    return found if low_precision is None else to_carrier(found, low_precision)


def _check_count(tensor: Any) -> None:
    """The fields of numbers hold as many as the shape says; several small ones may share a field."""
    expected = stored_bytes(tensor)
    held = max(len(getattr(tensor, field)) for field in _FIELDS)
    count = prod(tensor.dims)
    bits = _element_bits(tensor.data_type)
    packed = -(-count * bits // 8) if bits < 8 else count
    if held != packed and not (bits < 8 and held == -(-count * bits // 32)):
        raise ModelError(
            f"tensor {tensor.name!r} of the shape {list(tensor.dims)} needs {expected} bytes, and has {held} numbers"
        )


def dense_array(sparse: Any) -> np.ndarray[Any, Any]:
    """The value of a SparseTensorProto; indices are places in the flat tensor, or one row of coordinates each."""
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    name, shape = sparse.values.name, tuple(sparse.dims)
    if any(extent < 0 for extent in shape) or prod(shape) * values.itemsize > LARGEST_CONSTANT:
        raise ModelError(f"the sparse tensor {name!r} has the shape {shape}")
    made = np.zeros(shape, values.dtype)
    try:
        if indices.ndim == 2:
            made[tuple(indices.T)] = values
        else:
            made.reshape(-1)[indices] = values
    except (IndexError, ValueError) as error:
        raise ModelError(f"the sparse tensor {name!r} is damaged: {error}") from error
    return made


def attribute_value(attribute: Any) -> Any:
    """The value of an AttributeProto; graphs and tensors stay protos, strings are decoded."""
    onnx = onnx_package()
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [item.decode(errors="replace") for item in value]
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    return value
