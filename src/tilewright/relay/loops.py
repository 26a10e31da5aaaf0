"""Loops, written as recursive functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import scalar_type
from tilewright.relay.expr import Call, Let, Tuple, TupleGetItem, Var, const, var
from tilewright.relay.function import Function
from tilewright.relay.scope_builder import ScopeBuilder


def while_loop(
    cond: Callable[..., RelayExpr], loop_vars: Sequence[Any], loop_bodies: Callable[..., Sequence[RelayExpr]]
) -> Let:
    """A function of as many values as ``loop_vars``, which tell their names and types. While ``cond`` of the values
    holds they become ``loop_bodies`` of them; the function gives the last ones as a tuple."""
    builder = ScopeBuilder()
    loop = Var("while_loop")
    fresh = [
        Var(given.name_hint if isinstance(given, Var) else f"arg{position}", builder.type_of(given))
        for position, given in enumerate(loop_vars)
    ]
    with builder.if_scope(cond(*fresh)):
        builder.ret(loop(*loop_bodies(*fresh)))
    with builder.else_scope():
        builder.ret(Tuple(fresh))
    return Let(loop, Function(fresh, builder.get()), loop)


def for_loop(
    upper_bound: RelayExpr | int,
    loop_vars: Sequence[RelayExpr],
    loop_bodies: Callable[..., Sequence[RelayExpr]],
) -> Tuple:
    """The values that ``loop_vars`` come to have when ``loop_bodies(i, *values)`` has replaced them for each ``i`` from
    zero up to the bound, an int32."""
    bound = const(upper_bound, "int32") if isinstance(upper_bound, int) else upper_bound
    counter, limit = var("i", scalar_type("int32")), var("upper_bound", scalar_type("int32"))

    def bodies(position: Var, last: Var, *values: Var) -> list[RelayExpr]:
        return [position + const(1, "int32"), last, *loop_bodies(position, *values)]

    loop = while_loop(lambda position, last, *_: position < last, [counter, limit, *loop_vars], bodies)
    final = Call(loop, [const(0, "int32"), bound, *loop_vars])
    return Tuple([TupleGetItem(final, position + 2) for position in range(len(loop_vars))])
