"""Random numbers that a node of a model draws.

A generator is seeded by the node's ``seed``, or by its name: a model produces the same numbers in every run.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import TupleGetItem, const
from tilewright.relay.frontend.common.node import ModelNode

Extents = tuple[int, ...] | RelayExpr
"""A known shape, or a tensor that has it."""


def _seed(node: ModelNode, stream: int) -> int:
    given = node.attr("seed", None)
    base = zlib.crc32(node.name.encode()) if given is None else int(np.float32(given).view(np.uint32))
    return base + (stream << 32)


def uniform(node: ModelNode, extents: Extents, stream: int = 0) -> RelayExpr:
    """Numbers from 0 to 1, 1 left out, as float32. Streams of one node have nothing to do with each other."""
    seed = _seed(node, stream)
    if isinstance(extents, tuple):
        drawn = relay.random.uniform(relay.random.threefry_key(seed), extents, "float32")
        return TupleGetItem(drawn.tuple_value, 1)
    return _hashed(node, extents, seed)


def _word(value: int) -> RelayExpr:
    return const(np.asarray(value & 0xFFFFFFFF, dtype="uint32"))


def _hashed(node: ModelNode, like: RelayExpr, seed: int) -> RelayExpr:
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


def normal(node: ModelNode, extents: Extents) -> RelayExpr:
    """Normally distributed numbers, as float32, by the transformation of Box and Muller."""
    one = const(1.0, "float32")
    # Zero, of which there is no logarithm, may be drawn; one never is.
    radius = relay.log(relay.subtract(one, uniform(node, extents, 0)))
    radius = relay.sqrt(relay.multiply(const(-2.0, "float32"), radius))
    angle = relay.multiply(const(2 * math.pi, "float32"), uniform(node, extents, 1))
    return relay.multiply(radius, relay.cos(angle))


def extents_of(node: ModelNode, like: RelayExpr) -> Extents:
    """The shape of a tensor; where it is not known, the tensor."""
    shape = node.shape(like)
    known = tuple(extent for extent in shape if extent is not None)
    return known if len(known) == len(shape) else like
