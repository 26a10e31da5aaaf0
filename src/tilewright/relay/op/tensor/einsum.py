"""Sums of products in Einstein's notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import Dimension, broadcast_dimension, dims, shape_text, tuple_of_tensors
from tilewright.relay.op.tensor.reference import Array, wide


@attributes
class EinsumAttrs(OpAttrs):
    """The formula, as in ``ij,jk->ik``."""

    equation: str


def _labels(term: str, extra: int, equation: str) -> list[str]:
    """The label of each axis: its letter, and for those of ``...`` their number, counted from the right."""
    before, dots, after = term.partition("...")
    letters = before + after
    if letters and not (letters.isalpha() and letters.isascii()):
        raise RelationError(f"the term {term!r} of {equation!r} is not made of letters and '...'")
    return [*before, *(str(number) for number in reversed(range(extra if dots else 0))), *after]


def _result_shape(equation: str, shapes: Sequence[Sequence[Dimension]]) -> tuple[Dimension, ...]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise RelationError(f"{equation!r} is a formula of {len(terms)} tensors, {len(shapes)} were given")
    extents: dict[str, Dimension] = {}
    order: list[str] = []
    widest = 0
    for term, shape in zip(terms, shapes, strict=True):
        extra = len(shape) - len(term.replace("...", "", 1))
        if extra < 0 or (extra > 0 and "..." not in term):
            raise RelationError(f"{term!r} does not name the axes of a tensor of shape {shape_text(shape)}")
        widest = max(widest, extra if "..." in term else 0)
        for label, extent in zip(_labels(term, extra, equation), shape, strict=True):
            order.append(label)
            extents[label] = broadcast_dimension(extents[label], extent) if label in extents else extent
    if arrow:
        output = _labels(right, widest, equation)
    else:
        once = sorted(label for label in set(order) if label.isalpha() and order.count(label) == 1)
        output = [*(str(number) for number in reversed(range(widest))), *once]
    if len(set(output)) != len(output) or any(label not in extents for label in output):
        raise RelationError(f"{right!r} in {equation!r} must name axes of the tensors, each once")
    return tuple(extents[label] for label in output)


def _einsum_type(types: Sequence[Type], attrs: Any) -> Type | None:
    fields = tuple_of_tensors(types[0], "the argument")
    if fields is None:
        return None
    if not fields:
        raise RelationError("einsum takes one tensor or more")
    for field in fields[1:]:
        if field.dtype is not fields[0].dtype:
            raise RelationError(
                f"the tensors have different element types, {fields[0].dtype} and {field.dtype}"
            )
    return TensorType(_result_shape(attrs.equation, [dims(field) for field in fields]), fields[0].dtype)


def _sum_of_products(attrs: EinsumAttrs, data: Sequence[Array]) -> Array:
    made = np.einsum(attrs.equation, *(wide(one) for one in data))
    return np.asarray(made).astype(data[0].dtype, copy=False)


_einsum = define(
    "einsum",
    arguments=("data",),
    attrs=EinsumAttrs,
    relation=_einsum_type,
    compute=lambda attrs, inputs, out_type: [topi.einsum(attrs.equation, *inputs)],
    reference=_sum_of_products,
    kind=OpPattern.COMM_REDUCE,
    level=1,
    description="The sum of products that a formula names.",
)


def einsum(data: RelayExpr | Sequence[RelayExpr], equation: str) -> Call:
    """The sum of products of the tensors of a tuple that the formula names, as in ``ij,jk->ik``."""
    given = data if isinstance(data, RelayExpr) else Tuple(data)
    return Call(_einsum, (given,), EinsumAttrs(equation=equation))
