"""Checks that every variable of a function has one definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.ir.expr import Let, PrimExpr, Var
from tilewright.support.node import Node
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Stmt


def _variables(value: Any) -> Iterator[Var]:
    """The variables that a defining field holds."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, Var):
            yield each


def verify_ssa(func: PrimFunc) -> bool:
    """True if no variable is defined twice, and no parameter again.

    A statement counts at every place where it occurs, so one loop put at two places defines its variable twice. An
    expression counts once; a let of a variable may be repeated with the same value.
    """
    defined: set[Var] = set(func.params)
    if len(defined) != len(func.params):
        return False
    values: dict[Var, PrimExpr] = {}
    seen_expressions: set[int] = set()
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if not isinstance(node, Stmt):
            if id(node) in seen_expressions:
                continue
            seen_expressions.add(id(node))
        if isinstance(node, Let):
            known = values.setdefault(node.var, node.value)
            if known is not node.value and not expr_deep_equal(known, node.value):
                return False
        else:
            for name in node.defining_fields:
                for variable in _variables(getattr(node, name)):
                    if variable in defined:
                        return False
                    defined.add(variable)
        stack.extend(node.children())
    return not (defined & values.keys())
