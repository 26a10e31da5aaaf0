"""Tensors and attributes of a model as NumPy arrays and Python values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tilewright.relay.frontend.onnx.narrow import NARROW_TYPES, to_carrier
from tilewright.support.errors import ModelError


def onnx_package() -> Any:
    """The ``onnx`` package."""
    try:
        import onnx
    except ImportError as missing:
        raise ModelError("reading ONNX models needs the onnx package: pip install onnx") from missing
    return onnx


def dtype_name(element_type: int) -> str:
    """The name of an ONNX element type: "float32", "int64", ... ; that of the carrier for narrow types; an error for
    strings and the like."""
    if element_type in NARROW_TYPES:
        return NARROW_TYPES[element_type].carrier
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


def array_of(tensor: Any, folder: Path | None = None) -> np.ndarray[Any, Any]:
    """The value of a TensorProto, the carrier for narrow types; its external data is read from ``folder``."""
    onnx = onnx_package()
    dtype_name(tensor.data_type)
    found = onnx.numpy_helper.to_array(tensor, str(folder) if folder is not None else "")
    narrow = NARROW_TYPES.get(tensor.data_type)
    return np.asarray(found) if narrow is None else to_carrier(np.asarray(found), narrow)


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
