"""Attention: ``softmax(scale * q @ k.T + mask) @ v`` for every head, with operands in any order of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright import te
from tilewright.ir.expr import Select
from tilewright.ir.operators import const
from tilewright.te.tensor import Tensor
from tilewright.tir.op import exp
from tilewright.topi.arguments import check_tensor
from tilewright.topi.nn.utils import largest_number
from tilewright.topi.utils import get_const_tuple

AXES: Final = "NTHC"
"""Batch, tokens, heads and channels of a head: the letters of a layout."""


@dataclass(frozen=True)
class AttentionShape:
    """Extents of one attention: ``value_size`` channels has a head of the values, ``size`` one of the others. Each head
    of the keys and values serves ``shared`` heads of the queries. With a ``diagonal``, query q sees the keys up to
    q + diagonal only."""

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    value_size: int
    shared: int = 1
    diagonal: int | None = None

    @staticmethod
    def of(
        operands: Sequence[Tensor],
        layouts: Sequence[str],
        heads: int,
        shared: int = 1,
        diagonal: int | None = None,
    ) -> AttentionShape:
        """The extents of an attention of these operands: query, key and value."""
        query, key, value = (
            dict(zip(layout, get_const_tuple(operand.shape), strict=True))
            for operand, layout in zip(operands[:3], layouts[:3], strict=True)
        )
        return AttentionShape(
            query["N"], heads, query["T"], key["T"], query["C"], value["C"], shared, diagonal
        )

    def result(self, layout: str) -> tuple[int, ...]:
        """The shape of the result in a layout."""
        extents = dict(zip(AXES, (self.batch, self.queries, self.heads, self.value_size), strict=True))
        return tuple(extents[letter] for letter in layout)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    shape: AttentionShape,
    scale: float,
    layouts: Sequence[str],
    first_heads: Sequence[int],
) -> Tensor:
    """The values of every head, each query's weighted by its scores.

    ``layouts`` are those of query, key, value and result. ``first_heads`` say where the heads begin in the first
    three: one tensor may hold the heads of several. ``mask`` is added to the scores; it has the dimensions (batch,
    heads, keys, queries), all but the keys may be 1.
    """
    for tensor in (query, key, value, *([] if mask is None else [mask])):
        check_tensor("attention", tensor)
    dtype = "float64" if str(query.dtype) == "float64" else "float32"

    def read(number: int, tensor: Tensor, n: Any, t: Any, h: Any, c: Any) -> Any:
        head = h if number == 0 or shape.shared == 1 else h // shape.shared
        at = dict(zip(AXES, (n, t, head + first_heads[number], c), strict=True))
        return tensor(*(at[letter] for letter in layouts[number])).astype(dtype)

    rows = (shape.batch, shape.heads, shape.queries)
    channel = te.reduce_axis((0, shape.size), name="channel")
    products = te.compute(
        (*rows, shape.keys),
        lambda n, h, q, k: te.sum(
            read(0, query, n, q, h, channel.var) * read(1, key, n, k, h, channel.var), axis=channel
        ),
        name="products",
    )
    extents = () if mask is None else get_const_tuple(mask.shape)

    def score(n: Any, h: Any, q: Any, k: Any) -> Any:
        scaled = products(n, h, q, k) * scale
        if shape.diagonal is not None:
            scaled = Select(k <= q + shape.diagonal, scaled, const(float("-inf"), dtype))
        if mask is None:
            return scaled
        at = (0 if extent == 1 else index for extent, index in zip(extents, (n, h, k, q), strict=True))
        return scaled + mask(*at).astype(dtype)

    scores = te.compute((*rows, shape.keys), score, name="scores")
    over, total, over_values = (te.reduce_axis((0, shape.keys), name=name) for name in ("k", "k", "token"))
    largest = te.compute(
        rows, lambda n, h, q: largest_number(scores(n, h, q, over.var), axis=over), name="largest"
    )
    raised = te.compute(
        (*rows, shape.keys), lambda n, h, q, k: exp(scores(n, h, q, k) - largest(n, h, q)), name="raised"
    )
    sums = te.compute(rows, lambda n, h, q: te.sum(raised(n, h, q, total.var), axis=total), name="sums")
    weighted = te.compute(
        (*rows, shape.value_size),
        lambda n, h, q, c: te.sum(
            raised(n, h, q, over_values.var) * read(2, value, n, over_values.var, h, c), axis=over_values
        ),
        name="weighted",
    )

    def element(*indices: Any) -> Any:
        n, q, h, c = (indices[layouts[3].index(letter)] for letter in AXES)
        return (weighted(n, h, q, c) / sums(n, h, q)).astype(str(query.dtype))

    made: Tensor = te.compute(shape.result(layouts[3]), element, name="attention", tag="attention")
    return made
