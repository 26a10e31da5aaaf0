"""The functions of TVM's ``relay.frontend.onnx`` that its converters share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.compat.frontend_common import infer_shape, infer_type
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.relay.expr import Constant, Var, const
from tilewright.relay.frontend.onnx.tensors import array_of, dtype_name
from tilewright.support.errors import OpAttributeInvalid

__all__ = [
    "dimension_constraint",
    "dimension_picker",
    "get_info",
    "get_numpy",
    "get_pad_pair",
    "get_scalar",
    "get_type",
    "normalize_gather_indices",
    "onnx_default_layout",
    "onnx_input",
    "onnx_storage_order2layout",
    "revert_caffe2_pad",
]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class onnx_input(list[Any]):
    """The inputs of a node; one that is left out at the end is None."""

    def __getitem__(self, item: Any) -> Any:
        """An input, or those of a slice as if the list went on with None."""
        if isinstance(item, slice):
            stop = len(self) if item.stop is None else item.stop
            return [self[place] for place in range(max(stop, 0))[item]]
        return super().__getitem__(item) if item < len(self) else None


def get_numpy(tensor_proto: Any) -> np.ndarray[Any, Any]:
    """The value of a TensorProto."""
    return array_of(tensor_proto)


def get_type(elem_type: int) -> str:
    """The name of an element type: "float32" for 1."""
    return dtype_name(elem_type)


def get_info(info_proto: Any) -> tuple[str, list[Any], str | None, list[Any]]:
    """Of a ValueInfoProto: its name, its shape with Any for what is open, its element type, and its shape with the
    names of what is open."""
    tensor = info_proto.type.tensor_type
    shape = [extent.dim_value or UnknownDimension() for extent in tensor.shape.dim]
    names = [extent.dim_value or extent.dim_param for extent in tensor.shape.dim]
    return info_proto.name, shape, get_type(tensor.elem_type) if tensor.elem_type else None, names


def dimension_picker(prefix: str, suffix: str = "") -> Callable[[Mapping[str, Any]], str]:
    """A function from the attributes of a window to an operator's name: "conv" to "conv2d"."""

    def pick(attr: Mapping[str, Any]) -> str:
        count = len(attr["kernel_shape"])
        if count not in _LAYOUTS:
            raise OpAttributeInvalid(f"{prefix}: a kernel of {count} dimensions; 1, 2 and 3 are supported")
        return f"{prefix}{count}d{suffix}"

    return pick


def dimension_constraint() -> tuple[Callable[[Mapping[str, Any]], bool], str]:
    """Whether the kernel of a window has a number of dimensions that is supported, and what to say if not."""
    return lambda attr: len(attr["kernel_shape"]) in _LAYOUTS, "Only 1d, 2d and 3d kernels are supported."


def revert_caffe2_pad(pads: Sequence[int]) -> Sequence[int]:
    """The padding of the two axes, from four numbers of which the second two repeat the first."""
    if len(pads) not in (2, 4):
        raise OpAttributeInvalid(f"padding is two or four numbers, not {len(pads)}")
    return pads[:2]


def get_pad_pair(input1d: int, kernel1d: int, stride1d: int, mode: str) -> list[int]:
    """The padding before and after an axis under ``auto_pad``; the odd one comes last for SAME_UPPER."""
    last = (input1d - 1) // stride1d * stride1d
    total = max(last + kernel1d - input1d, 0)
    pair = [total // 2, total - total // 2]
    return pair[::-1] if "LOWER" in mode else pair


def onnx_default_layout(dims: int, op_name: str) -> str:
    """The layout of a tensor with so many axes of space."""
    return onnx_storage_order2layout(0, dims, op_name)


def onnx_storage_order2layout(storage_order: int, dims: int, op_name: str) -> str:
    """The layout for a storage order: channels first for 0, last for 1."""
    if dims not in _LAYOUTS:
        raise OpAttributeInvalid(f"{op_name}: {dims} axes of space; 1, 2 and 3 are supported")
    return _LAYOUTS[dims][bool(storage_order)]


def get_scalar(x: Any, params: Mapping[str, Any], dtype: str = "float32") -> Any:
    """An input of one element as a scalar: a constant if it is known."""
    if isinstance(x, Var) and x.name_hint in params:
        return const(params[x.name_hint].numpy().reshape(()), dtype)
    if isinstance(x, Constant):
        return const(x.data.numpy().reshape(()), dtype)
    flat = relay.squeeze(x) if infer_shape(x) else x
    return relay.cast(flat, dtype)


def normalize_gather_indices(data: Any, indices: Any, axis: int) -> Any:
    """Indices counted from the front of an axis: negative ones count from its end."""
    dtype = str(infer_type(indices).checked_type.dtype)
    extent = relay.cast(relay.take(relay.shape_of(data, "int64"), const(axis), axis=0), dtype)
    return relay.where(indices < const(0, dtype), indices + extent, indices)
