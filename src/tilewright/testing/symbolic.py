"""Checking facts about expressions: by proof, and by enumerating every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.int_constraints import IntConstraints, IntConstraintsTransform
from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    ExprLike,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    PrimExpr,
    Range,
    Sub,
    Var,
)
from tilewright.ir.functor import free_vars, substitute_expr
from tilewright.ir.structural import structural_equal
from tilewright.support.errors import ExpressionError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.op import all as all_of
from tilewright.tir.stmt import BufferStore, For, ForKind, Stmt


def assert_prim_expr_equal(lhs: ExprLike, rhs: ExprLike) -> None:
    """Fail unless the two expressions are the same or can be proven equal."""
    if not structural_equal(lhs, rhs) and not Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def check_bool_expr_is_true(
    bool_expr: ExprLike,
    vranges: Mapping[Var, Range | tuple[ExprLike, ExprLike]],
    cond: ExprLike | None = None,
) -> None:
    """Fail, with a counterexample, unless the condition holds for all values of its variables where ``cond`` holds.

    Every value within ``vranges`` is tried.
    """
    condition = operators.as_expr(bool_expr)
    if cond is not None:
        condition = operators.logical_or(operators.logical_not(cond), condition)
    ranges = {var: given if isinstance(given, Range) else Range(*given) for var, given in vranges.items()}
    missing = [var.name for var in free_vars(condition) if var not in ranges]
    if missing:
        raise ExpressionError(f"the ranges of {', '.join(missing)} are not given")
    bounds = [(_constant(given.min), _constant(given.extent)) for given in ranges.values()]
    results = np.ones([extent for _, extent in bounds] or [1], dtype="int8")
    axes = np.ogrid[tuple(slice(low, low + extent) for low, extent in bounds)]
    values = dict(zip(ranges, [np.asarray(axis, dtype=np.int64) for axis in axes], strict=True))
    found = _evaluated(condition, values)
    if found is not None:
        results[...] = found
    else:
        _interpret(condition, ranges, bounds, results)
    wrong = np.argwhere(results == 0)
    if len(wrong):
        example = {
            var.name: int(index) + low for var, index, (low, _) in zip(ranges, wrong[0], bounds, strict=False)
        }
        raise AssertionError(f"{condition} does not hold for {example}")


_OPERATIONS: dict[type, Any] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
    Min: np.minimum,
    Max: np.maximum,
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
    And: np.logical_and,
    Or: np.logical_or,
}


def _evaluated(expr: PrimExpr, values: Mapping[Var, Any]) -> Any:
    """The values of an expression of int32 for all values of its variables at once; None if it has other parts."""
    if isinstance(expr, Var):
        return values[expr] if expr.dtype == "int32" else None
    if isinstance(expr, IntImm):
        return np.int64(expr.value) if expr.dtype in ("int32", "bool") else None
    if isinstance(expr, Not):
        inner = _evaluated(expr.a, values)
        return None if inner is None else np.logical_not(inner)
    operation = _OPERATIONS.get(type(expr))
    if operation is None:
        return None
    left, right = _evaluated(expr.a, values), _evaluated(expr.b, values)  # type: ignore[attr-defined]
    if left is None or right is None:
        return None
    if operation in (np.floor_divide, np.mod) and not np.all(right):
        return None
    result = operation(left, right)
    # What is beyond int32 wraps: the interpreter knows how.
    return result if result.dtype == bool or np.all(np.abs(result) < 2**31) else None


def _interpret(
    condition: PrimExpr, ranges: Mapping[Var, Range], bounds: Sequence[tuple[int, int]], results: Any
) -> None:
    """Try every value of the variables in a loop nest."""
    buffer = decl_buffer(results.shape, "int8", name="results")
    loops = [Var(var.name, var.dtype) for var in ranges]
    moved = {
        var: operators.add(loop, low)
        for (var, loop), (low, _) in zip(zip(ranges, loops, strict=True), bounds, strict=True)
    }
    value = operators.cast("int8", substitute_expr(condition, moved))
    body: Stmt = BufferStore(buffer, value, loops or [0])
    for loop, (_, extent) in reversed(list(zip(loops, bounds, strict=True))):
        body = For(loop, 0, extent, ForKind.SERIAL, body)
    interpret(PrimFunc([buffer], body), results)


def _constant(value: PrimExpr) -> int:
    """The value of a bound that must be constant for every value to be tried."""
    simple = Analyzer().simplify(value)
    if not isinstance(simple, IntImm):
        raise ExpressionError(f"the bound {value} of a range is not a constant")
    return simple.value


def check_int_constraints_trans_consistency(
    constraints_trans: IntConstraintsTransform, vranges: Mapping[Var, Range] | None = None
) -> None:
    """Fail unless the two systems of a transformation have the same solutions and the maps between them are inverse."""
    source, target = constraints_trans.src, constraints_trans.dst
    given = dict(vranges or {})
    _check_solutions(source, target, constraints_trans.dst_to_src, constraints_trans.src_to_dst, given)
    _check_solutions(target, source, constraints_trans.src_to_dst, constraints_trans.dst_to_src, given)


def _check_solutions(
    source: IntConstraints,
    target: IntConstraints,
    target_values: Mapping[Var, PrimExpr],
    source_values: Mapping[Var, PrimExpr],
    given: Mapping[Var, Range],
) -> None:
    """Every solution of ``source`` gives one of ``target``, and is got back from it.

    ``target_values`` gives the variables of the target in terms of the source's, ``source_values`` the other way round.
    """
    facts: list[PrimExpr] = [substitute_expr(relation, target_values) for relation in target.relations]
    for var, bounds in target.ranges.items():
        value = target_values.get(var, var)
        end = operators.add(bounds.min, bounds.extent)
        facts.append(operators.greater_equal(value, substitute_expr(bounds.min, target_values)))
        facts.append(operators.less(value, substitute_expr(end, target_values)))
    for var in source.variables:
        facts.append(operators.equal(substitute_expr(source_values.get(var, var), target_values), var))
    true = operators.const(True)
    held = all_of(true, *source.relations)
    check_bool_expr_is_true(all_of(true, *facts), {**given, **source.ranges}, cond=held)
