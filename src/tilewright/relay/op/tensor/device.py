"""Copies from one device to another."""

from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.relations import same_type
from tilewright.runtime.device import Device, device
from tilewright.support.errors import ExpressionError


@attributes
class DeviceCopyAttrs(OpAttrs):
    """DLPack's numbers for the kinds of the two devices."""

    src_dev_type: int
    dst_dev_type: int


def device_number(given: Any) -> int:
    """DLPack's number for a kind of device, from a device, its name or the number."""
    if isinstance(given, Device):
        return given.device_type
    if isinstance(given, str):
        return device(given).device_type
    if isinstance(given, int):
        return given
    raise ExpressionError(f"a device is a Device or its name, not {given!r}")


_device_copy = define(
    "device_copy",
    arguments=("data",),
    attrs=DeviceCopyAttrs,
    relation=same_type,
    compute=lambda attrs, inputs, out_type: [topi.identity(inputs[0])],
    reference=lambda attrs, data: data.copy(),
    gradient=lambda result, grad: [device_copy(grad, result.attrs.dst_dev_type, result.attrs.src_dev_type)],
    layout=elementwise,
    kind=OpPattern.OPAQUE,
    level=10,
    description="The same tensor on another device.",
)


def device_copy(data: RelayExpr, src_dev: Any, dst_dev: Any) -> Call:
    """The same tensor on another device; devices are given as such or by name."""
    attrs = DeviceCopyAttrs(src_dev_type=device_number(src_dev), dst_dev_type=device_number(dst_dev))
    return Call(_device_copy, (data,), attrs)
