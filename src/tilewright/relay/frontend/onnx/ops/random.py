"""Operators that draw random numbers."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.random import Extents, extents_of, normal, uniform
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name


def _scaled(data: RelayExpr, factor: float, offset: float) -> RelayExpr:
    return relay.add(relay.multiply(data, const(factor, "float32")), const(offset, "float32"))


def _drawn(node: Node, extents: Extents, dtype: str) -> RelayExpr:
    if "Normal" in node.op_type:
        found = _scaled(normal(node, extents), float(node.attr("scale", 1.0)), float(node.attr("mean", 0.0)))
    else:
        low, high = float(node.attr("low", 0.0)), float(node.attr("high", 1.0))
        found = _scaled(uniform(node, extents), high - low, low)
    return converted(node, found, dtype)


@converter("RandomNormal", "RandomUniform")
def random_of_shape(node: Node) -> RelayExpr:
    """In a shape that is an attribute."""
    shape = tuple(int(extent) for extent in node.attr("shape"))
    return _drawn(node, shape, dtype_name(int(node.attr("dtype", 1))))


@converter("RandomNormalLike", "RandomUniformLike")
def random_like(node: Node, data: RelayExpr) -> RelayExpr:
    """In the shape of a tensor."""
    return _drawn(node, extents_of(node, data), _dtype(node, data))


def _dtype(node: Node, data: RelayExpr) -> str:
    element_type: Any = node.attr("dtype", None)
    return node.dtype(data) if element_type is None else dtype_name(int(element_type))


@converter("Bernoulli")
def bernoulli(node: Node, data: RelayExpr) -> RelayExpr:
    """One with the probability that each element is, else zero."""
    drawn = uniform(node, extents_of(node, data))
    return relay.cast(relay.less(drawn, converted(node, data, "float32")), _dtype(node, data))


@converter("Multinomial")
def multinomial(node: Node, data: RelayExpr) -> RelayExpr:
    """Classes drawn with the probabilities whose logarithms are the rows: the greatest of the logarithms, each with
    noise of Gumbel's distribution."""
    rows, classes = node.static_shape(data)
    samples = int(node.attr("sample_size", 1))
    drawn = uniform(node, (rows, samples, classes))
    one, tiny = const(1.0, "float32"), const(1e-30, "float32")
    exponential = relay.negative(relay.log(relay.subtract(one, drawn)))
    noise = relay.negative(relay.log(relay.maximum(exponential, tiny)))
    noisy = relay.add(relay.expand_dims(converted(node, data, "float32"), 1), noise)
    return relay.cast(relay.argmax(noisy, axis=2), dtype_name(int(node.attr("dtype", 6))))
