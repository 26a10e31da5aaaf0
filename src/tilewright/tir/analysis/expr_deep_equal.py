"""Syntactic equality of expressions, with variables, buffers and tensors equal only to themselves."""

from __future__ import annotations

from typing import Any

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import DataProducer, PrimExpr, Var
from tilewright.ir.op import Op
from tilewright.support.node import Node

_BY_IDENTITY = (Var, Buffer, DataProducer, Op)


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """True if both expressions have the same nodes in the same places, and so the same value wherever both can stand.

    Iterative, and looks at each pair of shared nodes once.
    """
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Any, Any]] = [(lhs, rhs)]
    while waiting:
        left, right = waiting.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        if isinstance(left, tuple) and isinstance(right, tuple):
            if len(left) != len(right):
                return False
            waiting.extend(zip(left, right, strict=True))
        elif isinstance(left, Node):
            if type(left) is not type(right) or isinstance(left, _BY_IDENTITY) or not left.field_names:
                return False
            if getattr(left, "dtype", None) is not getattr(right, "dtype", None):
                return False
            seen.add((id(left), id(right)))
            waiting.extend([(getattr(left, name), getattr(right, name)) for name in left.field_names])
        elif isinstance(right, Node) or type(left) is not type(right) or left != right:
            return False
    return True
