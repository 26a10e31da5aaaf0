"""How many floating-point operations a graph does: the measure of what a search has to speed up."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.ir.expr import BinaryOpExpr, CmpExpr, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Select
from tilewright.ir.functor import post_order
from tilewright.support.dtype import DataType
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation

FLOP_ATTRIBUTE: Final = "FLOP"
"""The attribute by which an operation says how many it does."""


def estimate_flops(operations: Sequence[Operation]) -> float:
    """The operations of the outputs' type in all computations; -1 where an extent is not a constant.

    Arithmetic on indices is not counted: it has another type than the result.
    """
    total = 0.0
    for operation in operations:
        if not isinstance(operation, ComputeOp):
            continue
        if FLOP_ATTRIBUTE in operation.attrs:
            total += float(_plain(operation.attrs[FLOP_ATTRIBUTE]))
            continue
        elements = _count(operation.axes)
        each = [_of_value(value, operation.output(0).dtype) for value in operation.body]
        if elements is None or None in each:
            return -1.0
        total += elements * sum(one for one in each if one is not None)
    return total


def _plain(value: object) -> float:
    return value.value if isinstance(value, IntImm) else float(value)  # type: ignore[arg-type]


def _count(axes: Sequence[IterVar]) -> int | None:
    extents = [axis.dom.extent if axis.dom is not None else None for axis in axes]
    if not all(isinstance(extent, IntImm) for extent in extents):
        return None
    return prod(extent.value for extent in extents if isinstance(extent, IntImm))


def _of_value(value: PrimExpr, dtype: DataType) -> float | None:
    """The operations for one element."""
    if not isinstance(value, Reduce):
        return _of_expression(value, dtype)
    times = _count(value.axis)
    if times is None:
        return None
    index = value.value_index
    return times * (
        _of_expression(value.combiner.result[index], dtype) + _of_expression(value.source[index], dtype)
    )


def _of_expression(root: PrimExpr, dtype: DataType) -> float:
    counts: dict[int, float] = {}
    for part in post_order(root):
        below = sum(counts[id(child)] for child in part.children())
        if isinstance(part, ProducerLoad):
            below = 0.0
        elif isinstance(part, Select):
            # Both sides are there, one of them counts.
            below -= min(counts[id(part.true_value)], counts[id(part.false_value)])
        elif isinstance(part, (BinaryOpExpr, CmpExpr)) and part.a.dtype.type_code == dtype.type_code:
            below += 1.0
        counts[id(part)] = below
    return counts[id(root)]
