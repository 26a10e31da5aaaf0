"""Reductions.

``axis`` is an axis, several, or None for all; negative axes count from the back. An empty tuple also means all axes.
With ``exclude``, the reduction is over all other axes. With ``keepdims``, reduced axes remain with size one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Tuple, TupleWrapper
from tilewright.relay.op import reduction_rules as rules
from tilewright.relay.op.attributes import OpAttrs
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import (
    Compute,
    Gradient,
    OpPattern,
    Reference,
    Relation,
    define,
    named_after,
)
from tilewright.relay.op.layout_rules import position_along_axis, reduction
from tilewright.relay.op.reduction_rules import ArgReduceAttrs, ReduceAttrs, VarianceAttrs

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "mean",
    "mean_std",
    "mean_variance",
    "min",
    "prod",
    "std",
    "sum",
    "variance",
]

Axes = int | Sequence[int] | None


def _axes(axis: Axes) -> tuple[int, ...] | None:
    return axis if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _define(
    name: str,
    relation: Relation,
    compute: Compute,
    reference: Reference,
    description: str,
    gradient: Gradient | None = None,
    attrs: type[OpAttrs] = ReduceAttrs,
    arguments: Sequence[str] = ("data",),
) -> Op:
    return define(
        name,
        arguments=arguments,
        attrs=attrs,
        relation=relation,
        compute=compute,
        reference=reference,
        gradient=gradient,
        layout=position_along_axis if attrs is ArgReduceAttrs else reduction,
        kind=OpPattern.COMM_REDUCE,
        level=4,
        description=description,
    )


def _function(op: Op) -> Callable[..., Call]:
    """The function that calls a reduction."""

    def made(data: RelayExpr, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Call:
        return Call(op, (data,), ReduceAttrs(_axes(axis), keepdims, exclude))

    return named_after(op, made)


def _position_function(op: Op) -> Callable[..., Call]:
    """The function that calls an operator that gives positions."""

    def made(
        data: RelayExpr,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        select_last_index: bool = False,
    ) -> Call:
        return Call(op, (data,), ArgReduceAttrs(_axes(axis), keepdims, select_last_index, exclude))

    return named_after(op, made)


sum = _function(
    _define(
        "sum",
        rules.number_type,
        rules.combined(topi.sum, topi.identity),
        rules.reduced_by(rules.sum_reference),
        "The sum, in the type of the data.",
        lambda result, grad: [rules.spread(result, grad)],
    )
)
prod = _function(
    _define(
        "prod",
        rules.number_type,
        rules.combined(topi.prod, topi.identity),
        rules.reduced_by(rules.prod_reference),
        "The product, in the type of the data.",
    )
)
max = _function(
    _define(
        "max",
        rules.extreme_type,
        rules.combined(topi.max, topi.identity),
        rules.reduced_by(np.max),
        "The greatest element.",
        rules.extreme_gradient,
    )
)
min = _function(
    _define(
        "min",
        rules.extreme_type,
        rules.combined(topi.min, topi.identity),
        rules.reduced_by(np.min),
        "The least element.",
        rules.extreme_gradient,
    )
)
all = _function(
    _define(
        "all",
        rules.boolean_type,
        rules.combined(topi.all, rules.truth),
        rules.reduced_by(np.all, to_bool=True),
        "True where all elements are; numbers count as true where they are not zero.",
    )
)
any = _function(
    _define(
        "any",
        rules.boolean_type,
        rules.combined(topi.any, rules.truth),
        rules.reduced_by(np.any, to_bool=True),
        "True where an element is; numbers count as true where they are not zero.",
    )
)
mean = _function(
    _define(
        "mean",
        rules.number_type,
        rules.mean,
        lambda attrs, data: rules.mean_of(attrs, data, 0, data.dtype),
        "The sum divided by the number of elements.",
        rules.mean_gradient,
    )
)
argmax = _position_function(
    _define(
        "argmax",
        rules.position_type,
        rules.positions(topi.argmax),
        rules.position_reference(np.argmax),
        "The position of the greatest element, int32; over several axes, in row-major order of them.",
        attrs=ArgReduceAttrs,
    )
)
argmin = _position_function(
    _define(
        "argmin",
        rules.position_type,
        rules.positions(topi.argmin),
        rules.position_reference(np.argmin),
        "The position of the least element, int32; over several axes, in row-major order of them.",
        attrs=ArgReduceAttrs,
    )
)

_VARIANCE = _define(
    "variance",
    rules.variance_type,
    rules.variance,
    rules.variance_reference,
    "The mean of the squared differences from a mean that is given.",
    rules.variance_gradient,
    attrs=VarianceAttrs,
    arguments=("data", "mean"),
)


def _variance_around(
    data: RelayExpr, center: RelayExpr, axis: Axes, keepdims: bool, exclude: bool, unbiased: bool
) -> Call:
    return Call(_VARIANCE, (data, center), VarianceAttrs(_axes(axis), keepdims, exclude, unbiased))


def variance(
    data: RelayExpr, axis: Axes = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Call:
    """The mean of the squared differences from the mean; ``unbiased``, the divisor is one less than their number."""
    center = mean(data, axis, True, exclude)
    return _variance_around(data, center, axis, keepdims, exclude, unbiased)


def std(
    data: RelayExpr, axis: Axes = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> Call:
    """The square root of the variance."""
    return call("sqrt", variance(data, axis, keepdims, exclude, unbiased))


def _with_mean(
    data: RelayExpr, axis: Axes, keepdims: bool, exclude: bool, finish: Callable[[Call], Call]
) -> TupleWrapper:
    center = mean(data, axis, True, exclude)
    made = finish(_variance_around(data, center, axis, keepdims, exclude, False))
    if not keepdims:
        # Which axes to drop is not known before the rank is, where ``axis`` names those that stay.
        center = mean(data, axis, False, True) if exclude else call("squeeze", center, axis=_axes(axis))
    return TupleWrapper(Tuple((center, made)), 2)


def mean_variance(
    data: RelayExpr, axis: Axes = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """The mean and the variance."""
    return _with_mean(data, axis, keepdims, exclude, lambda found: found)


def mean_std(
    data: RelayExpr, axis: Axes = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """The mean and the square root of the variance."""
    return _with_mean(data, axis, keepdims, exclude, lambda found: call("sqrt", found))


def logsumexp(data: RelayExpr, axis: Axes = None, keepdims: bool = False) -> Call:
    """The logarithm of the sum of the exponentials, which neither overflows nor loses what is small."""
    greatest = max(data, axis, True)
    # An infinite maximum is not a reference point: infinity less infinity is not a number.
    center: Any = call("where", call("isfinite", greatest), greatest, call("zeros_like", greatest))
    total = sum(call("exp", call("subtract", data, center)), axis, True)
    made = call("log", total) + center
    return made if keepdims else call("squeeze", made, axis=_axes(axis))
