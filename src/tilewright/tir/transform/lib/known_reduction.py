"""Blocks that are a reduction by a known operation: sums, products, minima and maxima."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import (
    Add,
    BinaryOpExpr,
    BufferLoad,
    CommReducer,
    FloatImm,
    Max,
    Min,
    Mul,
    PrimExpr,
    Var,
)
from tilewright.ir.functor import post_order
from tilewright.support.dtype import DataType
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.stmt import Block, BufferStore


@dataclass(frozen=True, slots=True)
class KnownReduction:
    """``buffer[indices] = operation(buffer[indices], value)``, which starts with the operation's identity."""

    operation: type[BinaryOpExpr]
    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    value: PrimExpr
    start: PrimExpr

    @property
    def reducer(self) -> CommReducer:
        """The operation as a reducer."""
        x, y = Var("x", self.buffer.dtype), Var("y", self.buffer.dtype)
        made: Any = self.operation
        return CommReducer([x], [y], [made(x, y)], [self.start])


def known_reduction(block: Block) -> KnownReduction | None:
    """How a block reduces; None if it does anything else, or does not start with the identity of the operation."""
    body, init = block.body, block.init
    plain = not block.match_buffers and not block.alloc_buffers
    if not (plain and isinstance(body, BufferStore) and isinstance(init, BufferStore)):
        return None
    value, combined = accumulated_value(body), body.value
    if value is None or init.buffer is not body.buffer or not same_indices(init.indices, body.indices):
        return None
    assert isinstance(combined, BinaryOpExpr)
    operation = type(combined)
    if not _is_identity(init.value, operation, body.buffer.dtype):
        return None
    return KnownReduction(operation, body.buffer, body.indices, value, init.value)


def _is_identity(value: PrimExpr, operation: type[BinaryOpExpr], dtype: DataType) -> bool:
    """True if a value changes nothing; for minima and maxima of floats that is the largest number, too, as in TVM."""
    if operation in (Min, Max):
        if isinstance(value, FloatImm) and math.isinf(value.value):
            return (value.value > 0) == (operation is Min)
        limit = operators.max_value(dtype) if operation is Min else operators.min_value(dtype)
    else:
        limit = operators.const(1 if operation is Mul else 0, dtype)
    return Analyzer().can_prove_equal(value, limit)


def accumulated_value(store: BufferStore) -> PrimExpr | None:
    """The value that a store accumulates into its element; None if it does something else."""
    value = store.value
    if not isinstance(value, (Add, Mul, Min, Max)):
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        itself = (
            isinstance(old, BufferLoad)
            and old.buffer is store.buffer
            and same_indices(old.indices, store.indices)
        )
        if itself and not any(
            isinstance(one, BufferLoad) and one.buffer is store.buffer for one in post_order(new)
        ):
            return new
    return None


def same_indices(a: tuple[PrimExpr, ...], b: tuple[PrimExpr, ...]) -> bool:
    """True if two elements of a buffer are the same."""
    return len(a) == len(b) and all(expr_deep_equal(one, other) for one, other in zip(a, b, strict=True))
