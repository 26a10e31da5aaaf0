"""Calls of operators in the form in which tasks know them: constant shapes, no blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilewright.autotvm.task.workload import TENSOR
from tilewright.topi.utils import get_const_tuple

TensorArgument = tuple[str, tuple[int, ...], str]


@dataclass(frozen=True)
class Description:
    """A call: its operator, attributes, and the shapes and types of its arguments as records have them."""

    operator: str
    attrs: Any
    tensors: tuple[TensorArgument, ...]


def described(operator: str, attrs: Any, tensors: Sequence[Any]) -> Description | None:
    """The description of a call on tensors, or on their types; None if a shape is not constant."""
    found = []
    for tensor in tensors:
        shape = get_const_tuple(tensor.shape)
        if not all(isinstance(extent, int) for extent in shape):
            return None
        found.append((TENSOR, shape, str(tensor.dtype)))
    return without_blocks(Description(operator, attrs, tuple(found)))


def without_blocks(call: Description) -> Description | None:
    """The call that a blocked one was made from: with NCHW images and whole weights."""
    if call.operator in ("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"):
        return _plain_convolution(call)
    if call.operator == "nn.contrib_conv2d_winograd_without_weight_transform":
        return _before_winograd(call)
    if call.operator == "nn.contrib_dense_pack":
        data, weight = call.tensors
        whole = (TENSOR, (int(call.attrs.units or 0), data[1][1]), weight[2])
        return None if not call.attrs.units else Description("nn.dense", call.attrs, (data, whole))
    return call


def _whole(tensor: TensorArgument, layout: str, plain: str) -> TensorArgument | None:
    """A tensor of a blocked layout in a plain one. An axis may be in blocks of blocks, as in OIHW4i16o4i."""
    parts = re.findall(r"(\d*)([A-Za-z])", layout)
    shape = tensor[1]
    if len(shape) != len(parts):
        return None
    extents = dict.fromkeys(plain, 1)
    for (_, axis), extent in zip(parts, shape, strict=True):
        if axis.upper() not in extents:
            return None
        extents[axis.upper()] *= extent
    return (TENSOR, tuple(extents[axis] for axis in plain), tensor[2])


def _plain_attributes(attrs: Any, **given: Any) -> Any:
    return SimpleNamespace(
        strides=given.get("strides", attrs.strides),
        padding=attrs.padding,
        dilation=given.get("dilation", attrs.dilation),
        groups=attrs.groups,
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="NCHW",
        out_dtype=attrs.out_dtype,
    )


def _plain_convolution(call: Description) -> Description | None:
    data = _whole(call.tensors[0], call.attrs.data_layout, "NCHW")
    weight = _whole(call.tensors[1], call.attrs.kernel_layout, "OIHW")
    if data is None or weight is None:
        return None
    return Description("nn.conv2d", _plain_attributes(call.attrs), (data, weight))


def _before_winograd(call: Description) -> Description | None:
    data = _whole(call.tensors[0], call.attrs.data_layout, "NCHW")
    if data is None or call.attrs.channels is None:
        return None
    shape = (int(call.attrs.channels), data[1][1], *get_const_tuple(call.attrs.kernel_size))
    weight = (TENSOR, shape, call.tensors[1][2])
    attrs = _plain_attributes(call.attrs, strides=(1, 1), dilation=(1, 1))
    return Description("nn.conv2d", attrs, (data, weight))
