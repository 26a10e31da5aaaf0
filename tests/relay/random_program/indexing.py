"""Recipes of the operators that pick and place elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.relay.random_program.evaluation import Value
from tests.relay.random_program.generator import ANYTHING, FLOATS, Generator, recipe

from tilewright.relay.expr import const
from tilewright.relay.op import transform

RANKS = (1, 2, 3)


def _filled(g: Generator, dtypes: Sequence[str]) -> Value | None:
    """A tensor with elements to pick; None where one without came up."""
    data = g.tensor(dtypes, rank=RANKS)
    return None if 0 in data.shape else data


@recipe("take")
def take(g: Generator) -> Any:
    """By indices within the extent, or beyond it where the mode says what that means."""
    data = _filled(g, ANYTHING)
    if data is None:
        return None
    axis = None if g.chance(0.2) else g.integer(-data.rank, data.rank - 1)
    extent = data.array.size if axis is None else data.shape[axis]
    mode = g.choice(["clip", "wrap", "fast"])
    low, high = (0, extent - 1) if mode == "fast" else (-extent, extent + 2)
    indices = g.fresh(g.shape(g.integer(0, 2)), "int32", low, high)
    return transform.take(data.expr, indices.expr, axis, mode=mode)


@recipe("gather")
def gather(g: Generator) -> Any:
    """Element by element along an axis."""
    data = _filled(g, ANYTHING)
    if data is None:
        return None
    axis = g.integer(-data.rank, data.rank - 1)
    shape = list(data.shape)
    shape[axis] = g.integer(1, 4)
    return transform.gather(
        data.expr, axis, g.fresh(shape, g.choice(["int32", "int64"]), 0, data.shape[axis] - 1).expr
    )


def _coordinates(g: Generator, shape: tuple[int, ...], depth: int, count: tuple[int, ...]) -> Any:
    """Indices for the first axes of a shape, one row an axis."""
    rows = [g.random.integers(0, extent, count) for extent in shape[:depth]]
    return g.fresh((depth, *count), "int32", values=np.stack(rows))


@recipe("gather_nd")
def gather_nd(g: Generator) -> Any:
    """By coordinates of some or all axes."""
    data = _filled(g, ANYTHING)
    if data is None:
        return None
    indices = _coordinates(g, data.shape, g.integer(1, data.rank), g.shape(g.integer(1, 2)))
    return transform.gather_nd(data.expr, indices.expr)


@recipe("scatter", "scatter_add")
def scatter(g: Generator) -> Any:
    """Each place once where the last one wins; any where they add up."""
    data = _filled(g, FLOATS)
    if data is None:
        return None
    axis = g.integer(-data.rank, data.rank - 1)
    if g.chance(0.5):
        shape = list(data.shape)
        shape[axis] = g.integer(1, 4)
        indices = g.fresh(shape, "int32", 0, data.shape[axis] - 1)
        function: Any = transform.scatter_add
    else:
        shape = list(data.shape)
        order = np.argsort(g.random.random(shape), axis=axis).astype("int32")
        indices = g.fresh(shape, "int32", values=order)
        function = transform.scatter
    return function(data.expr, indices.expr, g.tensor((data.dtype,), shape=shape).expr, axis)


@recipe("scatter_nd")
def scatter_nd(g: Generator) -> Any:
    """By coordinates, with sums where places meet."""
    data = _filled(g, ("float32",))
    if data is None:
        return None
    depth, count = g.integer(1, data.rank), g.shape(1)
    indices = _coordinates(g, data.shape, depth, count)
    updates = g.tensor(("float32",), shape=(*count, *data.shape[depth:]))
    return transform.scatter_nd(data.expr, indices.expr, updates.expr, "add")


@recipe("one_hot")
def one_hot(g: Generator) -> Any:
    """Also for indices that stand for nothing."""
    depth = g.integer(1, 5)
    indices = g.fresh(g.shape(g.integer(0, 2)), "int32", -1, depth)
    on, off = (const(float(g.integer(-2, 2)), "float32") for _ in range(2))
    return transform.one_hot(indices.expr, on, off, depth, g.integer(-1, indices.rank), "float32")


@recipe("sequence_mask")
def sequence_mask(g: Generator) -> Any:
    """The end of each sequence replaced."""
    data = g.tensor(("float32",), rank=(2, 3))
    axis = g.integer(0, 1)
    lengths = g.fresh((data.shape[1 - axis],), "int32", 0, data.shape[axis])
    return transform.sequence_mask(data.expr, lengths.expr, g.random.uniform(-1, 1), axis)


@recipe("unravel_index")
def unravel_index(g: Generator) -> Any:
    """Coordinates of flat indices."""
    shape = g.shape(g.integer(1, 3))
    indices = g.fresh(g.shape(1), "int32", 0, int(np.prod(shape)) - 1)
    return transform.unravel_index(indices.expr, const(np.array(shape, "int32")))


@recipe("invert_permutation")
def invert_permutation(g: Generator) -> Any:
    """Of a row of numbers in any order."""
    order = g.random.permutation(g.integer(1, 9)).astype("int32")
    return transform.invert_permutation(g.fresh(order.shape, "int32", values=order).expr)


@recipe("matrix_set_diag")
def matrix_set_diag(g: Generator) -> Any:
    """The main diagonal replaced."""
    data = g.tensor(FLOATS, rank=(2, 3))
    diagonal = g.tensor((data.dtype,), shape=(*data.shape[:-2], min(data.shape[-2:])))
    return transform.matrix_set_diag(data.expr, diagonal.expr)


@recipe("adv_index")
def adv_index(g: Generator) -> Any:
    """By indices for each of the first axes, broadcast together."""
    data = _filled(g, FLOATS)
    if data is None:
        return None
    count = g.integer(1, data.rank)
    length = g.integer(1, 4)
    rows = [
        g.fresh((length,) if g.chance(0.7) else (g.integer(1, 2), 1), "int64", 0, extent - 1)
        for extent in data.shape[:count]
    ]
    return transform.adv_index([data.expr, *(row.expr for row in rows)])
