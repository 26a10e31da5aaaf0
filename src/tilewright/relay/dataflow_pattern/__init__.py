"""Dataflow patterns of graph-level programs: match them, rewrite the matches, or partition them into functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.dataflow_pattern.partition import partition
from tilewright.relay.dataflow_pattern.pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    is_op,
    register_df_node,
    wildcard,
)
from tilewright.relay.dataflow_pattern.rewrite import DFPatternCallback, rewrite


def is_var(name: str = "") -> VarPattern:
    """Matches a variable; one of this name, if it is not empty."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Matches a constant."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """Matches an expression that is structurally equal to this one."""
    return ExprPattern(expr)


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """Matches a tuple of these fields; of any, for None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Matches a field of a tuple; any field, for None."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """Matches a conditional."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """Matches a let."""
    return LetPattern(var, value, body)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Matches what has this type, and matches the pattern."""
    return TypePattern(pattern if pattern is not None else wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Matches a tensor of this element type that matches the pattern."""
    return DataTypePattern(pattern if pattern is not None else wildcard(), dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """Matches a tensor of this shape that matches the pattern."""
    return ShapePattern(pattern if pattern is not None else wildcard(), shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Matches what has these attributes, and matches the pattern."""
    return (pattern if pattern is not None else wildcard()).has_attr(attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """Matches ``child`` where it dominates ``parent`` through ``path``."""
    return DominatorPattern(parent, path, child)


def match(pattern: DFPattern, expr: RelayExpr) -> bool:
    """True if the expression matches the pattern."""
    return pattern.match(expr)
