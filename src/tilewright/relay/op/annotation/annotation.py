"""Annotations: operators that return their argument, a tensor or a tuple, with a hint to the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.attrs import Attrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import CallEffectKind, Op
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.relations import any_type
from tilewright.relay.op.tensor.device import device_number
from tilewright.support.errors import ExpressionError


@attributes
class OnDeviceAttrs(OpAttrs):
    """DLPack's number for the kind of device, and whether the result stays there (``is_fixed``) or may be copied to
    where it is used."""

    device_type: int
    is_fixed: bool = False


@attributes
class CompilerAttrs(OpAttrs):
    """The code generator that takes the region."""

    compiler: str


@attributes
class CastHintAttrs(OpAttrs):
    """The type that the argument could have."""

    dtype: str


def _annotation(name: str, description: str, attrs: type[Attrs] | None = None) -> Op:
    op = define(
        name,
        arguments=("data",),
        attrs=attrs,
        relation=any_type,
        compute=lambda attrs, inputs, out_type: [topi.identity(one) for one in inputs],
        reference=lambda attrs, data: data,
        gradient=lambda result, grad: [grad],
        layout=elementwise,
        kind=OpPattern.OPAQUE,
        noncomputational=True,
        level=10,
        description=description,
    )
    op.set_attr("TCallEffectKind", CallEffectKind.ExprAnnotation, plevel=11)
    return op


_ON_DEVICE = _annotation("on_device", "Computed on a device of this kind.", OnDeviceAttrs)
_STOP_FUSION = _annotation("annotation.stop_fusion", "Not fused with what uses it.")
_CHECKPOINT = _annotation("annotation.checkpoint", "Recomputed for the gradient instead of stored.")
_COMPILER_BEGIN = _annotation(
    "annotation.compiler_begin", "Enters a region that another code generator takes.", CompilerAttrs
)
_COMPILER_END = _annotation(
    "annotation.compiler_end", "Leaves a region that another code generator takes.", CompilerAttrs
)
_CAST_HINT = _annotation("annotation.cast_hint", "Could have another type.", CastHintAttrs)
_BITPACK_START = _annotation("annotation.bitpack_start", "Enters a region whose tensors are packed by bits.")
_BITPACK_END = _annotation("annotation.bitpack_end", "Leaves a region whose tensors are packed by bits.")


def on_device(data: RelayExpr, device: Any, is_fixed: bool = False) -> Call:
    """``data``, computed on a device. With ``is_fixed`` the result stays there; otherwise it may be copied to where it
    is used."""
    return Call(_ON_DEVICE, (data,), OnDeviceAttrs(device_number(device), is_fixed))


def function_on_device(function: Function, param_devices: Sequence[Any], result_device: Any) -> Function:
    """A function whose parameters and result are on devices."""
    if len(param_devices) != len(function.params):
        raise ExpressionError(
            f"a function of {len(function.params)} parameters is given {len(param_devices)} devices for them"
        )
    kinds = tuple(device_number(device) for device in param_devices)
    placed: Function = function.with_attr(
        {"param_device_types": kinds, "result_device_type": device_number(result_device)}
    )
    return placed


def stop_fusion(data: RelayExpr) -> Call:
    """``data``, not fused with what uses it."""
    return Call(_STOP_FUSION, (data,))


def checkpoint(data: RelayExpr) -> Call:
    """``data``, recomputed where its gradient needs it, instead of stored."""
    return Call(_CHECKPOINT, (data,))


def compiler_begin(data: RelayExpr, compiler: str) -> Call:
    """``data``, entering a region that another code generator takes."""
    return Call(_COMPILER_BEGIN, (data,), CompilerAttrs(compiler))


def compiler_end(data: RelayExpr, compiler: str) -> Call:
    """``data``, leaving a region that another code generator takes."""
    return Call(_COMPILER_END, (data,), CompilerAttrs(compiler))


def cast_hint(data: RelayExpr, dtype: str) -> Call:
    """``data``, which could have another type."""
    return Call(_CAST_HINT, (data,), CastHintAttrs(dtype))


def bitpack_start(data: RelayExpr) -> Call:
    """``data``, entering a region whose tensors are packed by bits."""
    return Call(_BITPACK_START, (data,))


def bitpack_end(data: RelayExpr) -> Call:
    """``data``, leaving a region whose tensors are packed by bits."""
    return Call(_BITPACK_END, (data,))
