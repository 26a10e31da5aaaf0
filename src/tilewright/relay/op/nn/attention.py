"""Attention as one operator, which never materializes all scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import Shape, dims, same, tensor
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.attention import AXES, AttentionShape


@attributes
class AttentionAttrs(OpAttrs):
    """contrib_attention: how many heads there are, what scores are multiplied with, the orders of batch (N), tokens
    (T), heads (H) and channels (C), at which head of each operand the heads begin, how many heads of queries share one
    of keys and values, and the last key that the first query sees, if queries do not see all."""

    heads: Any = None
    scale: float = 1.0
    query_layout: str = "NTHC"
    key_layout: str = "NTHC"
    value_layout: str = "NTHC"
    out_layout: str = "NTHC"
    first_heads: Any = (0, 0, 0)
    shared: int = 1
    diagonal: Any = None

    @property
    def layouts(self) -> tuple[str, str, str, str]:
        """Those of query, key, value and result."""
        return self.query_layout, self.key_layout, self.value_layout, self.out_layout


def attention_shape(shapes: Sequence[Shape], attrs: Any) -> AttentionShape:
    """The extents, from the shapes of query, key, value and, if there is one, mask; an error where they do not fit."""
    found: list[dict[str, int]] = []
    if attrs.shared < 1 or attrs.heads % attrs.shared:
        raise RelationError(f"{attrs.heads} heads cannot share keys and values by {attrs.shared}")
    counts = (attrs.heads, attrs.heads // attrs.shared, attrs.heads // attrs.shared)
    for layout, shape, first, heads in zip(attrs.layouts, shapes, attrs.first_heads, counts, strict=False):
        if sorted(layout) != sorted(AXES):
            raise RelationError(f"a layout is an order of {', '.join(AXES)}, not {layout!r}")
        if len(shape) != len(AXES):
            raise RelationError(f"operands of attention have four dimensions, not {len(shape)}")
        extents = [extent for extent in shape if isinstance(extent, int)]
        if len(extents) < len(shape):
            raise RelationError("the shapes of the operands of attention must be known")
        found.append(dict(zip(layout, extents, strict=True)))
        if not 0 <= first <= found[-1]["H"] - heads:
            raise RelationError(f"{heads} heads from {first} are not among {found[-1]['H']}")
    if sorted(attrs.out_layout) != sorted(AXES):
        raise RelationError(f"a layout is an order of {', '.join(AXES)}, not {attrs.out_layout!r}")
    query, key, value = found
    same(query["N"], key["N"], "the batches of queries and keys")
    same(query["N"], value["N"], "the batches of queries and values")
    same(query["C"], key["C"], "the channels of queries and keys")
    same(key["T"], value["T"], "the tokens of keys and values")
    if min(*query.values(), *value.values()) < 1:
        raise RelationError("attention needs at least one of each: batch, heads, queries, keys and channels")
    made = AttentionShape(
        query["N"], attrs.heads, query["T"], key["T"], query["C"], value["C"], attrs.shared, attrs.diagonal
    )
    if len(shapes) > 3:
        _check_mask(shapes[3], made)
    return made


def _check_mask(mask: Shape, shape: AttentionShape) -> None:
    wanted = (shape.batch, shape.heads, shape.keys, shape.queries)
    fits = len(mask) == len(wanted) and all(
        extent == full or (extent == 1 and place != 2)
        for place, (extent, full) in enumerate(zip(mask, wanted, strict=True))
    )
    if not fits:
        raise RelationError(f"a mask of attention has the shape {wanted}, 1 for all but the keys, not {mask}")


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    if len(types) not in (3, 4):
        raise RelationError(f"attention takes a query, a key, a value and perhaps a mask, not {len(types)}")
    found = [tensor(one, "an operand of attention") for one in types]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    if any(one.dtype is not known[0].dtype for one in known):
        raise RelationError("the operands of attention have one element type")
    shape = attention_shape([dims(one) for one in known], attrs)
    return TensorType(_result_shape(shape, attrs), known[0].dtype)


def _result_shape(shape: AttentionShape, attrs: Any) -> tuple[int, ...]:
    return shape.result(attrs.out_layout)


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    shape = attention_shape([tuple(topi.utils.get_const_tuple(one.shape)) for one in inputs], attrs)
    query, key, value, *mask = inputs
    added = mask[0] if mask else None
    return [topi.nn.attention(query, key, value, added, shape, attrs.scale, attrs.layouts, attrs.first_heads)]


def _reference(attrs: Any, *given: Any) -> Any:
    """In float64, the plain way."""
    query, key, value = (
        np.asarray(one, np.float64)
        .transpose([layout.index(letter) for letter in "NHTC"])[:, first : first + attrs.heads // shared]
        .repeat(shared, axis=1)
        for one, layout, first, shared in zip(
            given, attrs.layouts, attrs.first_heads, (1, attrs.shared, attrs.shared), strict=False
        )
    )
    scores = query @ key.swapaxes(2, 3) * attrs.scale
    if attrs.diagonal is not None:
        seen = np.tri(scores.shape[2], scores.shape[3], attrs.diagonal, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    if len(given) > 3:
        scores = scores + np.asarray(given[3], np.float64).swapaxes(2, 3)
    with np.errstate(invalid="ignore"):
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        made = raised / raised.sum(axis=-1, keepdims=True) @ value
    return made.transpose(["NHTC".index(letter) for letter in attrs.out_layout]).astype(given[0].dtype)


ATTENTION = define(
    "nn.contrib_attention",
    arguments=None,
    attrs=AttentionAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=10,
    description="softmax(scale * query @ key.T + mask) @ value for every head.",
)


def contrib_attention(
    query: RelayExpr,
    key: RelayExpr,
    value: RelayExpr,
    mask: RelayExpr | None = None,
    heads: int = 1,
    scale: float = 1.0,
    layouts: Sequence[str] = ("NTHC",) * 4,
    first_heads: Sequence[int] = (0, 0, 0),
    shared: int = 1,
    diagonal: int | None = None,
) -> Call:
    """Attention of every query to all keys, head by head, without the whole matrix of scores.

    ``layouts`` are the orders of batch (N), tokens (T), heads (H) and channels (C) in query, key, value and result.
    ``first_heads`` say at which head each operand's begin, so that one projection can hold all three. ``mask`` is added
    to the scores: (batch, heads, keys, queries), all but the keys may be 1. ``shared`` heads of queries in a row have
    one head of keys and values. With a ``diagonal``, query q sees the keys up to q + diagonal: 0 is the causal mask.
    """
    of_query, of_key, of_value, of_result = layouts
    attrs = AttentionAttrs(
        heads, scale, of_query, of_key, of_value, of_result, tuple(first_heads), shared, diagonal
    )
    return Call(ATTENTION, (query, key, value) if mask is None else (query, key, value, mask), attrs)
