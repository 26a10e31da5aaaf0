"""Discrete Fourier transforms as products with matrices of cosines and sines.

A product is fast at the lengths that audio and vision models use. Where the matrix would be large, the transform is
split into those of two factors of its length, as Cooley and Tukey do.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.node import ModelNode

LARGE_MATRIX: Final = 1 << 20
"""Elements of a matrix above which a transform is split."""
LARGEST_MATRIX: Final = 1 << 25
LONGEST: Final = 1 << 25

Parts = tuple[Expr, Expr | None]
"""The real and the imaginary part of a tensor; None for zero."""
Array = np.ndarray[Any, Any]


def transformed(
    node: ModelNode, data: Parts, axis: int, count: int, *, inverse: bool, onesided: bool, scale: float
) -> Parts:
    """The transform of ``count`` elements along an axis, times ``scale``.

    An axis of another length is cut off or padded with zeros. Of a one-sided transform only the first half is there,
    since the other mirrors it: its results, or where it is the inverse its elements, and then the results are real.
    """
    taken = count // 2 + 1 if inverse and onesided else count
    size = node.shape(data[0])[axis]
    if size is None:
        size = node.static_shape(data[0])[axis]
    if not 1 <= count <= LONGEST:
        raise node.fail(f"a transform of {count} elements is not possible")
    rank = node.rank(data[0])
    order = [place for place in range(rank) if place != axis] + [axis]
    moved = _each(data, lambda part: _moved(part, order))
    used = min(size, taken)
    if used < size:
        moved = _each(moved, lambda part: _cut(part, used))
    results = count // 2 + 1 if onesided and not inverse else count
    parts = 1 if data[1] is None else 2
    produced = 1 if onesided and inverse else 2
    if parts * used * produced * results > LARGE_MATRIX and _factors(count) is not None:
        found = _whole(
            node, _completed(node, moved, used, count, onesided and inverse), count, inverse, scale
        )
        if onesided:
            found = (found[0], None) if inverse else _each(found, lambda part: _cut(part, results))
    else:
        _check_matrix(node, count, parts * used * produced * results)
        found = _product(node, moved, _matrix(count, used, parts, inverse, onesided, scale), produced)
    back = [int(place) for place in np.argsort(order)]
    return _each(found, lambda part: _moved(part, back))


def _each(parts: Parts, function: Any) -> Parts:
    real, imaginary = parts
    return function(real), None if imaginary is None else function(imaginary)


def _moved(part: Expr, order: list[int]) -> Expr:
    return part if order == sorted(order) else relay.transpose(part, order)


def _cut(part: Expr, count: int) -> Expr:
    """The first elements along the last axis."""
    return relay.strided_slice(part, begin=[0], end=[count], axes=[-1])


# As one product


def _check_matrix(node: ModelNode, count: int, elements: int) -> None:
    """Refuse a transform before its matrix is made."""
    if elements > LARGEST_MATRIX:
        raise node.fail(f"a transform of {count} elements, which has no factors, takes too large a matrix")


def _matrix(count: int, used: int, parts: int, inverse: bool, onesided: bool, scale: float) -> Array:
    """The factors of the elements' parts for each of the results' parts: (results, elements)."""
    results = count // 2 + 1 if onesided and not inverse else count
    # Products of indices modulo the length keep the angles small, and the sines exact.
    angle = 2 * np.pi / count * (np.outer(np.arange(results), np.arange(used)) % count)
    weight = np.full(used, scale)
    if onesided and inverse:
        # The half that is not given mirrors the one that is, but for the ends.
        weight[1 : (count + 1) // 2] *= 2
    cosine, sine = np.cos(angle) * weight, np.sin(angle) * (weight if inverse else -weight)
    rows = [[cosine, -sine], [sine, cosine]]
    if onesided and inverse:
        rows = rows[:1]
    return np.block([row[:parts] for row in rows])


def _product(node: ModelNode, data: Parts, matrix: Array, produced: int) -> Parts:
    """Tensors times a matrix, along the last axis."""
    real, imaginary = data
    values = real if imaginary is None else relay.concatenate([real, imaginary], axis=-1)
    weight = node.constant(matrix, real)
    if node.rank(real) == 1:
        found = relay.squeeze(relay.nn.dense(relay.expand_dims(values, 0), weight), axis=[0])
    else:
        found = relay.nn.dense(values, weight)
    if produced == 1:
        return found, None
    halves = relay.split(found, 2, axis=-1)
    return halves[0], halves[1]


# In factors


def _factors(count: int) -> tuple[int, int] | None:
    """The two factors that are the closest to each other."""
    found = next((one for one in range(isqrt(count), 1, -1) if count % one == 0), None)
    return None if found is None else (found, count // found)


def _completed(node: ModelNode, data: Parts, used: int, count: int, mirrored: bool) -> Parts:
    """All elements along the last axis: what a one-sided spectrum leaves out, and zeros."""
    if mirrored:
        data = _each(data, lambda part: _padded(node, part, count // 2 + 1 - used))
        ends = (count + 1) // 2

        def whole(part: Expr, sign: float) -> Expr:
            mirror = relay.reverse(relay.strided_slice(part, begin=[1], end=[ends], axes=[-1]), -1)
            return relay.concatenate([part, relay.multiply(mirror, const(sign, node.dtype(part)))], axis=-1)

        real, imaginary = data
        if imaginary is not None:
            # Imaginary parts of the ends would cancel out.
            kept = np.zeros(count)
            kept[1:ends] = kept[count - ends + 1 :] = 1
            imaginary = relay.multiply(whole(imaginary, -1.0), node.constant(kept, real))
        return whole(real, 1.0), imaginary
    return _each(data, lambda part: _padded(node, part, count - used))


def _padded(node: ModelNode, part: Expr, more: int) -> Expr:
    if not more:
        return part
    return relay.nn.pad(part, [(0, 0)] * (node.rank(part) - 1) + [(0, more)])


def _whole(node: ModelNode, data: Parts, count: int, inverse: bool, scale: float) -> Parts:
    """The transform of all elements along the last axis."""
    factors = _factors(count)
    parts = 1 if data[1] is None else 2
    if factors is None or 2 * parts * count * count <= LARGE_MATRIX:
        _check_matrix(node, count, 2 * parts * count * count)
        return _product(node, data, _matrix(count, count, parts, inverse, False, scale), 2)
    outer, inner = factors
    rank = node.rank(data[0])
    swapped = [*range(rank - 1), rank, rank - 1]

    def split(part: Expr) -> Expr:
        return relay.transpose(relay.reshape(part, [0] * (rank - 1) + [outer, inner]), swapped)

    real, imaginary = _whole(node, _each(data, split), outer, inverse, scale)
    assert imaginary is not None
    angle = 2 * np.pi / count * np.outer(np.arange(inner), np.arange(outer)) * (1 if inverse else -1)
    cosine, sine = (node.constant(factor, real) for factor in (np.cos(angle), np.sin(angle)))
    turned = (real * cosine - imaginary * sine, real * sine + imaginary * cosine)
    found = _whole(node, _each(turned, lambda part: relay.transpose(part, swapped)), inner, inverse, 1.0)
    return _each(
        found, lambda part: relay.reshape(relay.transpose(part, swapped), [0] * (rank - 1) + [count])
    )
