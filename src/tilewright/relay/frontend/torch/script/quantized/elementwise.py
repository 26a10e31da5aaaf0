"""Element-wise operators on quantised tensors, and operators on numbers that take quantised ones as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.torch.node import Expr
from tilewright.relay.frontend.torch.registry import Converter
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.quantized.arithmetic import (
    as_quantized,
    limits,
    numbers_of,
    quantized,
    quantized_to,
    require_quantized,
)
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import ListValue, Quantization, Tensor

# Of two tensors


def _binary(combine: Callable[..., Expr], with_relu: bool) -> Callable[..., Tensor]:
    def apply(node: ScriptNode, one: Tensor, other: Tensor, scale: Any, zero: Any) -> Tensor:
        of = require_quantized(node, one)
        made = combine(numbers_of(node, one), numbers_of(node, other))
        return quantized_to(node, relay.nn.relu(made) if with_relu else made, scale, zero, of.dtype)

    return apply


operator("quantized::add")(_binary(relay.add, False))
operator("quantized::add_relu")(_binary(relay.add, True))
operator("quantized::mul")(_binary(relay.multiply, False))
operator("quantized::mul_relu")(_binary(relay.multiply, True))


@operator("quantized::matmul")
def matmul(node: ScriptNode, one: Tensor, other: Tensor, scale: Any, zero: Any) -> Tensor:
    """A product of matrices, with leading dimensions that are the same."""
    of = require_quantized(node, one)
    left, right = numbers_of(node, one), numbers_of(node, other)
    made = (
        relay.nn.matmul(left, right)
        if node.rank(left) == 2
        else relay.nn.batch_matmul(left, right, transpose_b=False)
    )
    return quantized_to(node, made, scale, zero, of.dtype)


# Of a tensor and a number


def _with_relu(apply: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def applied(node: ScriptNode, data: Tensor, number: Any) -> Tensor:
        return relu(node, apply(node, data, number))

    return applied


def add_scalar(node: ScriptNode, data: Tensor, number: Any) -> Tensor:
    """The sum with a number: the zero point moves, unless it would leave the range of the type."""
    of = require_quantized(node, data)
    addend = float(node.number_of(node.resolved(number), "the number"))
    low, high = limits(of.dtype)
    place = of.zero - round(addend / of.scale)
    if low <= place <= high:
        return as_quantized(node, node.store.read(data), replace(of, zero=place))
    zero = low if place < low else high
    scale = of.scale * ((high - place) if place < low else (place - low)) / (high - low)
    numbers = relay.add(numbers_of(node, data), const(addend, "float32"))
    return quantized_to(node, numbers, scale, zero, of.dtype)


def mul_scalar(node: ScriptNode, data: Tensor, number: Any) -> Tensor:
    """The product with a number: the scale changes, and for a negative one the integers are turned around."""
    of = require_quantized(node, data)
    factor = float(node.number_of(node.resolved(number), "the number"))
    integers = node.store.read(data)
    low, high = limits(of.dtype)
    if factor > 0:
        return as_quantized(node, integers, replace(of, scale=of.scale * factor))
    if factor == 0:
        return as_quantized(node, relay.zeros_like(integers), replace(of, scale=1.0, zero=0))
    turned = relay.subtract(const(high + low, "int32"), relay.cast(integers, "int32"))
    changed = replace(of, scale=-of.scale * factor, zero=high + low - of.zero)
    return as_quantized(node, relay.cast(turned, of.dtype), changed)


operator("quantized::add_scalar")(add_scalar)
operator("quantized::mul_scalar")(mul_scalar)
operator("quantized::add_scalar_relu")(_with_relu(add_scalar))
operator("quantized::mul_scalar_relu")(_with_relu(mul_scalar))


# Joining


@operator("quantized::cat", "quantized::cat_relu")
def cat(node: ScriptNode, tensors: Any, axis: int, scale: Any = None, zero: Any = None) -> Tensor:
    """Tensors one after the other, all with the scale and zero point that are given, or with the first one's."""
    items = node.items(tensors)
    first = require_quantized(node, items[0])
    to = replace(
        first,
        scale=first.scale if scale is None else node.known(scale),
        zero=first.zero if zero is None else node.known(zero),
    )
    parts = []
    for item in items:
        same = (item.quantization.scale, item.quantization.zero) == (to.scale, to.zero)
        parts.append(node.store.read(item) if same else quantized(node, numbers_of(node, item), to))
    made = as_quantized(node, relay.concatenate(parts, axis), to)
    return relu(node, made) if node.op_type.endswith("_relu") else made


# Activations


def relu(node: ScriptNode, data: Tensor) -> Tensor:
    """What stands for a negative number becomes the zero point."""
    of = require_quantized(node, data)
    made = relay.maximum(node.store.read(data), node.cast(of.zero, of.dtype))
    return as_quantized(node, made, of)


@operator("quantized::relu6")
def relu6(node: ScriptNode, data: Tensor, *options: Any) -> Tensor:
    """Between zero and six."""
    of = require_quantized(node, data)
    high = min(round(6.0 / of.scale) + of.zero, limits(of.dtype)[1])
    made = relay.clip(relay.cast(node.store.read(data), "int32"), of.zero, high)
    return as_quantized(node, relay.cast(made, of.dtype), of)


def _activation(function: Callable[..., Expr]) -> Callable[..., Tensor]:
    def apply(node: ScriptNode, data: Tensor, *options: Any) -> Tensor:
        of = require_quantized(node, data)
        *settings, scale, zero = options
        return quantized_to(node, function(numbers_of(node, data), *settings), scale, zero, of.dtype)

    return apply


def _hard_swish(data: Expr) -> Expr:
    third = relay.clip(relay.add(data, const(3.0, "float32")), 0.0, 6.0)
    return relay.multiply(data, relay.multiply(third, const(1 / 6, "float32")))


def _elu(data: Expr, alpha: float = 1.0) -> Expr:
    below = relay.multiply(const(alpha, "float32"), relay.subtract(relay.exp(data), const(1.0, "float32")))
    return relay.where(relay.greater(data, const(0.0, "float32")), data, below)


operator("quantized::hardswish")(_activation(_hard_swish))
operator("quantized::sigmoid")(_activation(relay.sigmoid))


@operator("quantized::leaky_relu")
def leaky_relu(node: ScriptNode, data: Tensor, slope: float, in_place: bool, scale: Any, zero: Any) -> Tensor:
    """A slope below zero."""
    return _activation(lambda numbers: relay.nn.leaky_relu(numbers, slope))(node, data, scale, zero)


@operator("quantized::elu")
def elu(node: ScriptNode, data: Tensor, scale: Any, zero: Any, alpha: Any = 1, *options: Any) -> Tensor:
    """An exponential below zero."""
    return _activation(lambda numbers: _elu(numbers, float(alpha)))(node, data, scale, zero)


@operator("quantized::dropout")
def dropout(node: ScriptNode, data: Tensor, *options: Any) -> Tensor:
    """Nothing in inference."""
    return data


# Operators on numbers, applied to quantised tensors

_MOVING: Final = frozenset(
    [
        "adaptive_max_pool2d",
        "alias",
        "amax",
        "amin",
        "chunk",
        "clone",
        "contiguous",
        "detach",
        "expand",
        "expand_as",
        "flatten",
        "flip",
        "index_select",
        "max",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "min",
        "narrow",
        "permute",
        "pixel_shuffle",
        "pixel_unshuffle",
        "repeat",
        "reshape",
        "reshape_as",
        "roll",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "swapaxes",
        "swapdims",
        "t",
        "to",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "view",
        "view_as",
        "channel_shuffle",
        "movedim",
    ]
)
"""They move integers, or compare them: scale and zero point stay."""
_COMPUTING: Final = frozenset(
    [
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "clamp",
        "clip",
        "hardtanh",
        "leaky_relu",
        "mean",
        "relu6",
        "threshold",
        "upsample_bilinear2d",
        "elu",
        "celu",
    ]
)
"""They compute with numbers; scale and zero point stay."""
_OWN: Final = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (2 / 256, 128)}
"""They have a scale and a zero point of their own, here for uint8."""


def has_quantized(node: ScriptNode, values: Any) -> bool:
    """True if one of the values is a quantised tensor, or a list of such."""
    for value in values:
        if isinstance(value, Tensor) and value.quantization is not None:
            return True
        if isinstance(value, ListValue):
            content = node.store.content(value.cell)
            if isinstance(content, list) and has_quantized(node, content):
                return True
    return False


def converted(node: ScriptNode, convert: Converter, given: dict[str, Any]) -> tuple[Any, Quantization]:
    """What an operator on numbers gives for a quantised tensor: integers, and what they stand for."""
    assert node.schema is not None
    name = node.op_type.removeprefix("aten::").removesuffix("_")
    tensor = next(value for value in given.values() if isinstance(value, Tensor))
    of = require_quantized(node, tensor)
    if name == "relu":
        made = relu(node, tensor)
        return node.store.read(made), of
    arguments = {key: node.resolved(value) for key, value in given.items()}
    if name in _MOVING:
        return convert(node, arguments, node.schema.defaults), of
    own = _OWN.get(name)
    if name not in _COMPUTING and own is None:
        raise node.fail(
            "the operator is not supported for quantised tensors: dequantize before it (DeQuantStub)"
        )
    if own is not None:
        low, _ = limits(of.dtype)
        of = Quantization(own[0], own[1] + low, of.dtype)
    key = next(key for key, value in given.items() if value is tensor)
    arguments[key] = numbers_of(node, tensor)
    return quantized(node, convert(node, arguments, node.schema.defaults), of), of
