"""Recipes of reductions, scans, sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.random_program.generator import FLOATS, NUMBERS, Generator, recipe

from tilewright.relay.op import algorithm, reduce, transform
from tilewright.relay.op.tensor import einsum

RANKS = (1, 2, 3, 4)


def _reduction(
    name: str, dtypes: tuple[str, ...], low: float | None = None, high: float | None = None
) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        data = g.tensor(dtypes, rank=RANKS, low=low, high=high)
        axis = g.axes(data.rank)
        # With exclude, the axes that are named are those that stay.
        exclude = axis is not None and g.chance(0.2)
        return getattr(reduce, name)(data.expr, axis=axis, keepdims=g.chance(0.3), exclude=exclude)


for _name in ("sum", "max", "min"):
    _reduction(_name, (*FLOATS, "int32", "int64"))
_reduction("mean", FLOATS)
_reduction("prod", FLOATS, 0.7, 1.4)
_reduction("all", ("bool",))
_reduction("any", ("bool",))


@recipe("argmax", "argmin")
def position(g: Generator) -> Any:
    """Along one axis, the first or the last of equals."""
    data = g.tensor((*FLOATS, "int32"), rank=RANKS)
    function = g.choice([reduce.argmax, reduce.argmin])
    axis = g.integer(-data.rank, data.rank - 1)
    return function(data.expr, axis=axis, keepdims=g.chance(0.3), select_last_index=g.chance(0.3))


@recipe("variance")
def moments(g: Generator) -> Any:
    """Mean and spread."""
    data = g.tensor(FLOATS, rank=RANKS)
    function = g.choice([reduce.variance, reduce.std, reduce.mean_variance, reduce.mean_std])
    return function(data.expr, axis=g.axes(data.rank), keepdims=g.chance(0.5))


@recipe("exp", "sum")
def logsumexp(g: Generator) -> Any:
    """Several operators that are often one."""
    data = g.tensor(FLOATS, rank=RANKS)
    return reduce.logsumexp(data.expr, axis=g.axes(data.rank), keepdims=g.chance(0.5))


@recipe("cumsum", "cumprod")
def scan(g: Generator) -> Any:
    """Along one axis, or over all elements."""
    data = g.tensor((*FLOATS, "int32"), rank=RANKS, low=0.5, high=1.5)
    axis = None if g.chance(0.2) else g.integer(-data.rank, data.rank - 1)
    return g.choice([transform.cumsum, transform.cumprod])(data.expr, axis=axis, exclusive=g.chance(0.3))


@recipe("sort", "argsort")
def sort(g: Generator) -> Any:
    """Along one axis, either way."""
    data = g.tensor(NUMBERS, rank=RANKS)
    function = g.choice([algorithm.sort, algorithm.argsort])
    return function(data.expr, axis=g.integer(-data.rank, data.rank - 1), is_ascend=g.chance(0.5))


@recipe("topk")
def topk(g: Generator) -> Any:
    """Values, positions or both."""
    data = g.tensor((*FLOATS, "int32"), rank=RANKS)
    axis = g.integer(-data.rank, data.rank - 1)
    return algorithm.topk(
        data.expr,
        k=g.integer(1, data.shape[axis]),
        axis=axis,
        ret_type=g.choice(["both", "values", "indices"]),
        is_ascend=g.chance(0.5),
    )


@recipe("searchsorted")
def searchsorted(g: Generator) -> Any:
    """In a row that is sorted."""
    row = np.sort(g.random.uniform(-3, 3, g.integer(1, 9))).astype("float32")
    values = g.tensor(("float32",), rank=RANKS)
    return algorithm.searchsorted(g.fresh(row.shape, values=row).expr, values.expr, right=g.chance(0.5))


@recipe("collapse_sum_like", "collapse_sum_to")
def collapse(g: Generator) -> Any:
    """Back to a shape from which the tensor could have been broadcast."""
    data = g.tensor(FLOATS, rank=(2, 3))
    kept = g.integer(1, data.rank)
    shape = tuple(1 if g.chance(0.4) else extent for extent in data.shape[data.rank - kept :])
    if g.chance(0.5):
        return transform.collapse_sum_to(data.expr, shape)
    return transform.collapse_sum_like(data.expr, g.tensor((data.dtype,), shape=shape).expr)


@recipe("einsum")
def sums_of_products(g: Generator) -> Any:
    """A few of the usual ones."""
    i, j, k = g.shape(3)
    equation, shapes = g.choice(
        [
            ("ij,jk->ik", [(i, j), (j, k)]),
            ("ij->ji", [(i, j)]),
            ("ijk->ik", [(i, j, k)]),
            ("bij,bjk->bik", [(2, i, j), (2, j, k)]),
            ("i,j->ij", [(i,), (j,)]),
            ("ij,ij->", [(i, j), (i, j)]),
        ]
    )
    return einsum([g.tensor(("float32",), shape=shape).expr for shape in shapes], equation)
