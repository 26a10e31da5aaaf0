"""Counting the arithmetic of a schedule, for tuners to say how fast a candidate is."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    ProducerLoad,
    Reduce,
    Select,
    Sub,
)
from tilewright.support.node import Node
from tilewright.te.operation import ComputeOp
from tilewright.topi.utils import get_const_int

_ONE_EACH = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Max, Min, EQ, NE, LT, LE, GT, GE, And, Or, Not)


class FlopCalculationError(RuntimeError):
    """The operations of a schedule cannot be counted."""


def compute_flop(sch: Any) -> int:
    """The arithmetic operations of all stages of a schedule. Index arithmetic and conversions are not counted."""
    total = 0
    try:
        for stage in sch.stages:
            operation = stage.op
            if isinstance(operation, ComputeOp):
                elements = _iterations(operation.axis)
                total += elements * sum(_count(value) for value in operation.body[:1])
    except (TypeError, ValueError) as problem:
        raise FlopCalculationError(
            f"the operations of this schedule cannot be counted ({problem}): call cfg.add_flop in the template"
        ) from problem
    if total == 0:
        raise FlopCalculationError(
            "the schedule has no arithmetic to count: call cfg.add_flop in the template with the number to compare by"
        )
    return total


def _iterations(axes: Sequence[IterVar]) -> int:
    extents: list[int] = []
    for axis in axes:
        if axis.dom is None:
            raise ValueError(f"the axis {axis.var.name} has no range")
        extents.append(int(get_const_int(axis.dom.extent)))
    return prod(extents)


def _count(value: Node) -> int:
    if isinstance(value, Reduce):
        steps = _iterations(value.axis)
        combining = sum(_count(part) for part in value.combiner.result)
        return steps * (combining + sum(_count(part) for part in value.source))
    if isinstance(value, ProducerLoad):
        return 0
    if isinstance(value, Select):
        return max(_count(value.true_value), _count(value.false_value))
    if isinstance(value, Call):
        if getattr(value.op, "name", "") == "tir.if_then_else":
            return max(_count(argument) for argument in value.args[1:])
        return 1 + sum(_count(argument) for argument in value.args)
    inside = sum(_count(child) for child in value.children())
    if isinstance(value, Cast):
        return inside
    return inside + isinstance(value, _ONE_EACH)
