"""Rejecting programs that certainly read outside their inputs.

Only provable cases count: reads of inputs of constant shape, outside any condition, whose indices are affine in axes of
constant range, so that the smallest and the largest index are reached. Everything else is left to
``tir.instrument_bound_checkers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.arith import detect_linear_equation
from tilewright.ir.expr import (
    Call,
    IntImm,
    IterVar,
    PrimExpr,
    ProducerLoad,
    Range,
    Reduce,
    Select,
    Var,
    is_const,
)
from tilewright.support.errors import LoweringError
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.tensor import Operation, Tensor


def check_reads(operation: Operation, ranges: Mapping[IterVar, Range]) -> None:
    """Raise an error if the operation, computed over these ranges, certainly reads outside an input."""
    if not isinstance(operation, ComputeOp):
        return
    if not any(isinstance(tensor.op, PlaceholderOp) for tensor in operation.inputs):
        return
    limits = {axis.var: _constant_range(ranges.get(axis)) for axis in operation.root_iter_vars}
    for value in operation.body:
        for load in _certain_reads(value):
            tensor = load.producer
            if isinstance(tensor, Tensor) and isinstance(tensor.op, PlaceholderOp):
                _check_load(operation, tensor, load.indices, limits)


def _constant_range(found: Range | None) -> tuple[int, int] | None:
    """The first and last value of a range of constants that is not empty."""
    if found is None or not isinstance(found.min, IntImm) or not isinstance(found.extent, IntImm):
        return None
    first, count = found.min.value, found.extent.value
    return (first, first + count - 1) if count > 0 else None


def _certain_reads(value: PrimExpr) -> Iterator[ProducerLoad]:
    """The reads that happen whenever the expression is computed; conditional reads are left out."""
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, PrimExpr) or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Reduce):
            if is_const(part.condition, 1):
                waiting.extend(part.source)
        elif isinstance(part, Select):
            waiting.append(part.condition)
        elif isinstance(part, Call) and getattr(part.op, "name", "") == "tir.if_then_else":
            waiting.append(part.args[0])
        else:
            if isinstance(part, ProducerLoad):
                yield part
            waiting.extend(part.children())


def _check_load(
    operation: ComputeOp,
    tensor: Tensor,
    indices: Sequence[PrimExpr],
    limits: Mapping[Var, tuple[int, int] | None],
) -> None:
    for dimension, (index, extent) in enumerate(zip(indices, tensor.shape, strict=True)):
        found = _extremes(index, limits)
        if found is None or not isinstance(extent, IntImm):
            continue
        low, high = found
        if low < 0 or high >= extent.value:
            raise LoweringError(
                f"{operation.name} reads {tensor.name} at {index} in dimension {dimension}, from {low} to {high}, "
                f"but {tensor.name} has {extent.value} elements there; guard the read with if_then_else",
                span=operation.span,
            )


def _extremes(index: PrimExpr, limits: Mapping[Var, tuple[int, int] | None]) -> tuple[int, int] | None:
    """The least and greatest value of an affine index; None where they are not certain."""
    variables = list(limits)
    factors = [one.value for one in detect_linear_equation(index, variables) if isinstance(one, IntImm)]
    if len(factors) != len(variables) + 1:
        return None
    low = high = factors[-1]
    for variable, factor in zip(variables, factors, strict=False):
        if factor == 0:
            continue
        limit = limits[variable]
        if limit is None:
            return None
        ends = (factor * limit[0], factor * limit[1])
        low, high = low + min(ends), high + max(ends)
    return low, high
