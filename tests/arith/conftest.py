"""The oracle of the arithmetic tests: expressions evaluated by plain Python integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tilewright.arith.pool import Pool
from tilewright.ir import expr as nodes
from tilewright.ir.functor import post_order
from tilewright.ir.operators import as_expr


class Undefined(ArithmeticError):
    """The expression divides by zero here."""


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    nodes.Add: lambda a, b: a + b,
    nodes.Sub: lambda a, b: a - b,
    nodes.Mul: lambda a, b: a * b,
    nodes.FloorDiv: lambda a, b: a // b,
    nodes.FloorMod: lambda a, b: a % b,
    nodes.Div: _truncated,
    nodes.Mod: lambda a, b: a - b * _truncated(a, b),
    nodes.Min: min,
    nodes.Max: max,
    nodes.EQ: lambda a, b: int(a == b),
    nodes.NE: lambda a, b: int(a != b),
    nodes.LT: lambda a, b: int(a < b),
    nodes.LE: lambda a, b: int(a <= b),
    nodes.GT: lambda a, b: int(a > b),
    nodes.GE: lambda a, b: int(a >= b),
    nodes.And: lambda a, b: int(bool(a) and bool(b)),
    nodes.Or: lambda a, b: int(bool(a) or bool(b)),
}
_DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)


def evaluate_expr(root: Any, values: Mapping[Any, int]) -> int:
    """The value of a scalar integer or bool expression; raises ``Undefined`` where it divides by zero."""
    found: dict[Any, int] = {}
    for node in post_order(root):
        kind = type(node)
        if isinstance(node, nodes.Var):
            found[node] = values[node]
        elif isinstance(node, nodes.IntImm):
            found[node] = node.value
        elif kind in OPERATIONS:
            a, b = found[node.a], found[node.b]
            if kind in _DIVISIONS and b == 0:
                raise Undefined
            result = OPERATIONS[kind](a, b)
            dtype = node.dtype
            if dtype.is_integral and not (dtype.is_int and dtype.bits >= 32):
                result = nodes.wrap_integer(dtype, result)
            found[node] = result
        elif isinstance(node, nodes.Not):
            found[node] = int(not found[node.a])
        elif isinstance(node, nodes.Select):
            found[node] = found[node.true_value] if found[node.condition] else found[node.false_value]
        elif isinstance(node, nodes.Cast):
            value = found[node.value]
            found[node] = int(value != 0) if node.dtype.is_bool else nodes.wrap_integer(node.dtype, value)
        else:
            raise AssertionError(f"the oracle does not know {kind.__name__}")
    return found[root]


@pytest.fixture(scope="session")
def evaluate() -> Callable[[Any, Mapping[Any, int]], int]:
    """``evaluate_expr``."""
    return evaluate_expr


@pytest.fixture(scope="session")
def undefined() -> type[ArithmeticError]:
    """What ``evaluate`` raises where an expression divides by zero."""
    return Undefined


@pytest.fixture(scope="session")
def same() -> Callable[[Any, Any], bool]:
    """Whether two expressions have the same structure; Python numbers stand for int32 constants."""

    def compare(a: Any, b: Any) -> bool:
        pool = Pool()
        return pool.intern(as_expr(a)) is pool.intern(as_expr(b))

    return compare
