"""Operators that draw random numbers.

A generator is seeded by the node's ``seed``, or by its name: a model produces the same numbers in every run.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import TupleGetItem, const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name

Extents = tuple[int, ...] | RelayExpr
"""A known shape, or a tensor that has it."""


def _seed(node: Node, stream: int) -> int:
    given = node.attr("seed", None)
    base = zlib.crc32(node.name.encode()) if given is None else int(np.float32(given).view(np.uint32))
    return base + (stream << 32)


def uniform(node: Node, extents: Extents, stream: int = 0) -> RelayExpr:
    """Numbers from 0 to 1, 1 left out, as float32. Streams of one node have nothing to do with each other."""
    seed = _seed(node, stream)
    if isinstance(extents, tuple):
        drawn = relay.random.uniform(relay.random.threefry_key(seed), extents, "float32")
        return TupleGetItem(drawn.tuple_value, 1)
    return _hashed(node, extents, seed)


def _word(value: int) -> RelayExpr:
    return const(np.asarray(value & 0xFFFFFFFF, dtype="uint32"))


def _hashed(node: Node, like: RelayExpr, seed: int) -> RelayExpr:
    """Numbers for a shape that only the program knows: each place's index, permuted (PCG)."""
    count = relay.cast(relay.ndarray_size(like, "int64"), "int64")
    places = relay.arange(node.constant(0, "int64"), count, node.constant(1, "int64"), "int64")
    state = relay.cast(places, "uint32")
    for salt in (seed, seed >> 32):
        state = relay.add(relay.multiply(state, _word(747796405)), _word(2891336453 ^ (salt * 0x9E3779B9)))
        turn = relay.add(relay.right_shift(state, _word(28)), _word(4))
        mixed = relay.bitwise_xor(relay.right_shift(state, turn), state)
        state = relay.multiply(mixed, _word(277803737))
        state = relay.bitwise_xor(relay.right_shift(state, _word(22)), state)
    fraction = relay.cast(relay.right_shift(state, _word(8)), "float32")
    return relay.reshape_like(relay.multiply(fraction, const(2.0**-24, "float32")), like)


def normal(node: Node, extents: Extents) -> RelayExpr:
    """Normally distributed numbers, as float32, by the transformation of Box and Muller."""
    one = const(1.0, "float32")
    # Zero, of which there is no logarithm, may be drawn; one never is.
    radius = relay.log(relay.subtract(one, uniform(node, extents, 0)))
    radius = relay.sqrt(relay.multiply(const(-2.0, "float32"), radius))
    angle = relay.multiply(const(2 * math.pi, "float32"), uniform(node, extents, 1))
    return relay.multiply(radius, relay.cos(angle))


def _extents(node: Node, like: RelayExpr) -> Extents:
    shape = node.shape(like)
    known = tuple(extent for extent in shape if extent is not None)
    return known if len(known) == len(shape) else like


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
    return _drawn(node, _extents(node, data), _dtype(node, data))


def _dtype(node: Node, data: RelayExpr) -> str:
    element_type: Any = node.attr("dtype", None)
    return node.dtype(data) if element_type is None else dtype_name(int(element_type))


@converter("Bernoulli")
def bernoulli(node: Node, data: RelayExpr) -> RelayExpr:
    """One with the probability that each element is, else zero."""
    drawn = uniform(node, _extents(node, data))
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
