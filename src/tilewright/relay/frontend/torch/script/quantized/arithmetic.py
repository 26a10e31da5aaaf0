"""Quantising and dequantising as PyTorch's kernels do it: numbers are multiplied by the inverse of the scale, rounded
to the nearest integer, halfway to the even one, and then moved by the zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.torch.node import Expr
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.values import Quantization, Tensor


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    found = np.iinfo(dtype)
    return int(found.min), int(found.max)


def _aligned(node: ScriptNode, parameter: Any, data: Expr, axis: int | None, dtype: str) -> Expr:
    """A scale or zero point that broadcasts to the data."""
    if axis is None:
        return node.cast(parameter, dtype)
    after = node.rank(data) - 1 - axis
    vector = node.cast(parameter, dtype)
    return relay.expand_dims(vector, 1, after) if after else vector


def _inverse(node: ScriptNode, scale: Any, data: Expr, axis: int | None) -> Expr:
    if isinstance(scale, Constant):
        inverse: Any = Constant((np.float32(1) / scale.data.numpy().astype("float32")).astype("float32"))
    elif isinstance(scale, Expr):
        inverse = relay.divide(const(1.0, "float32"), node.cast(scale, "float32"))
    else:
        inverse = const(np.float32(1) / np.float32(scale), "float32")
    return _aligned(node, inverse, data, axis, "float32")


def quantized(node: ScriptNode, data: Expr, to: Quantization) -> Expr:
    """Numbers as integers."""
    steps = relay.multiply(node.cast(data, "float32"), _inverse(node, to.scale, data, to.axis))
    whole = relay.add(relay.nearbyint(steps), _aligned(node, to.zero, data, to.axis, "float32"))
    return relay.cast(relay.clip(whole, *limits(to.dtype)), to.dtype)


def shifted(node: ScriptNode, data: Expr, of: Quantization) -> Expr:
    """Integers as their differences from the zero point, as int32."""
    wide = relay.cast(data, "int32")
    known = of.zero if isinstance(of.zero, int) else node.value(of.zero)
    if known is not None and not np.any(known):
        return wide
    return relay.subtract(wide, _aligned(node, of.zero, data, of.axis, "int32"))


def dequantized(node: ScriptNode, data: Expr, of: Quantization) -> Expr:
    """Integers as the numbers that they stand for."""
    return relay.multiply(
        relay.cast(shifted(node, data, of), "float32"), _aligned(node, of.scale, data, of.axis, "float32")
    )


def numbers_of(node: ScriptNode, tensor: Any) -> Expr:
    """A quantised tensor as the numbers that it stands for."""
    of = require_quantized(node, tensor)
    return dequantized(node, node.store.read(tensor), of)


def require_quantized(node: ScriptNode, tensor: Any) -> Quantization:
    """What the integers of a tensor stand for."""
    found = tensor.quantization if isinstance(tensor, Tensor) else None
    if found is None:
        raise node.fail("a quantised tensor is expected: quantize it before (QuantStub)")
    return found


def as_quantized(node: ScriptNode, integers: Any, of: Quantization) -> Tensor:
    """A new quantised tensor."""
    made = node.store.tensor(node.graph.folder.settled(integers))
    made.quantization = of
    return made


def quantized_to(node: ScriptNode, numbers: Expr, scale: Any, zero: Any, dtype: str) -> Tensor:
    """Numbers as a new quantised tensor, with one scale and zero point."""
    of = Quantization(scalar_of(node, scale), scalar_of(node, zero), dtype)
    return as_quantized(node, quantized(node, numbers, of), of)


def scalar_of(node: ScriptNode, value: Any) -> Any:
    """A scale or zero point: a number where it is known, else an expression."""
    found = node.known(value)
    return node.resolved(found)
