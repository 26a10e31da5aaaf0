"""Reducers: ``sum``, ``min``, ``max``, and those that users define with ``comm_reducer``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import (
    CommReducer,
    ExprLike,
    FloatImm,
    IntImm,
    IterVar,
    PrimExpr,
    ProducerLoad,
    Reduce,
    Var,
)
from tilewright.support.errors import ExpressionError

Reducer = Callable[..., Any]


def _parameter_names(combine: Callable[..., Any]) -> tuple[str, str]:
    """The names of both sides, which the variables of the reducer get."""
    code = getattr(combine, "__code__", None)
    if code is None or code.co_argcount != 2:
        raise ExpressionError(
            "the combining function of a reducer takes two arguments: what is there, and what comes"
        )
    left, right = code.co_varnames[:2]
    return left, right


def _axes(axis: Any) -> tuple[IterVar, ...]:
    """The axes, each of which must be a reduction axis."""
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if not axes:
        raise ExpressionError("a reduction needs one axis or more")
    for each in axes:
        if not isinstance(each, IterVar) or each.iter_type != IterVar.CommReduce:
            raise ExpressionError(f"a reduction runs over axes made by te.reduce_axis, not {each!r}")
    return axes


def _start_values(init: Any, count: int) -> list[PrimExpr]:
    """The values that a reduction starts from: constants or elements of tensors."""
    if init is None:
        return []
    values = [operators.as_expr(value) for value in (init if isinstance(init, (list, tuple)) else [init])]
    if len(values) != count:
        raise ExpressionError(f"a reduction of {count} values starts from {count} values, not {len(values)}")
    for value in values:
        if not isinstance(value, (ProducerLoad, IntImm, FloatImm)):
            raise ExpressionError(
                f"a reduction starts from a constant or an element of a tensor, not {value}"
            )
    return values


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Reducer:
    """A reducer from a function that combines two values (or two tuples) and one that gives the identity for types.

    The reducer is called as ``reducer(value, axis, where=None, init=None)``, with one reduction axis or several; a
    tuple of values gives a tuple of results. Called with values only, it combines them: ``max(a, b)``.
    """

    def reduce_over(expr: Any, axis: Any, where: ExprLike, init: Any) -> Any:
        left_name, right_name = _parameter_names(fcombine)
        axes = _axes(axis)
        many = isinstance(expr, (list, tuple))
        sources = [operators.as_expr(value) for value in expr] if many else [operators.as_expr(expr)]
        types = [source.dtype for source in sources]
        suffixes = [f"_{position}" for position in range(len(sources))] if many else [""]
        lhs = tuple(Var(left_name + suffix, kind) for suffix, kind in zip(suffixes, types, strict=True))
        rhs = tuple(Var(right_name + suffix, kind) for suffix, kind in zip(suffixes, types, strict=True))
        combined = fcombine(lhs, rhs) if many else fcombine(lhs[0], rhs[0])
        identity = fidentity(*types)
        results = _as_sequence(combined, len(sources), name, "combining function")
        identities = _as_sequence(identity, len(sources), name, "identity function")
        for result, kind in zip(results, types, strict=True):
            if result.dtype is not kind:
                raise ExpressionError(f"the combining function of {name} turns {kind} into {result.dtype}")
        combiner = CommReducer(lhs, rhs, results, identities)
        start = _start_values(init, len(sources))
        condition = operators.as_expr(True if where is None else where)
        outputs = tuple(
            Reduce(combiner, sources, axes, condition, position, start) for position in range(len(sources))
        )
        return outputs if many else outputs[0]

    def reducer(expr: Any, axis: Any, where: Any = None, init: Any = None, *args: Any) -> Any:
        if isinstance(axis, (IterVar, list, tuple)):
            if args:
                raise ExpressionError(
                    f"{name} over an axis takes a value, the axis, a condition and a start value"
                )
            return reduce_over(expr, axis, where, init)
        result = fcombine(expr, axis)
        for more in (where, init, *args):
            if more is not None:
                result = fcombine(result, more)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = (
        f"{name} of a value over reduction axes (value, axis, where=None, init=None), or of several values."
    )
    return reducer


def _as_sequence(value: Any, count: int, name: str, what: str) -> Sequence[PrimExpr]:
    """The results of a user's function as expressions, one for each value that is reduced."""
    values = [operators.as_expr(each) for each in (value if isinstance(value, (list, tuple)) else (value,))]
    if len(values) != count:
        raise ExpressionError(f"the {what} of {name} gives {len(values)} values, {count} are reduced")
    return values


sum = comm_reducer(lambda x, y: operators.add(x, y), lambda dtype: operators.const(0, dtype), name="sum")
min = comm_reducer(lambda x, y: operators.minimum(x, y), operators.greatest, name="min")
max = comm_reducer(lambda x, y: operators.maximum(x, y), operators.least, name="max")
