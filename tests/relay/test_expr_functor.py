"""Visiting graph-level expressions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis import post_order_visit


def visited(expr: relay.Expr) -> list[str]:
    """What is visited, in order."""
    found: list[str] = []
    post_order_visit(expr, lambda node: found.append(getattr(node, "name_hint", type(node).__name__)))
    return found


def test_every_node_is_visited_once() -> None:
    """After what it is made of; a node that is shared once, the whole once."""
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    assert visited(shared * shared) == ["Op", "Op", "x", "Call", "Call"]
    assert visited(x) == ["x"]
    assert visited(relay.Function([x], shared)) == ["x", "Op", "Call", "Function"]


def test_lets_are_visited_from_the_inside() -> None:
    """Variables and values in order, then the body, then the lets around it."""
    x, y, z = (relay.var(name, shape=(2,)) for name in "xyz")
    inner = relay.Let(z, y, z)
    found: list[object] = []
    post_order_visit(relay.Let(y, x, inner), found.append)
    assert found[:3] == [y, x, z]
    assert found[-2] is inner
    assert len(found) == 5


class Named(relay.ExprFunctor):
    """The class of a node, for every node that has no method."""

    def visit_default(self, expr: relay.Expr) -> str:
        return type(expr).__name__

    def visit_call(self, call: relay.Call) -> str:
        """Goes on to the method above where the call is of an operator."""
        return "called" if isinstance(call.op, relay.Function) else super().visit_call(call)


def test_each_node_has_a_method_to_go_back_to() -> None:
    """Every method of the base gives what ``visit_default`` gives; there it is an error that names the method."""
    x = relay.var("x", shape=(2,))
    made = relay.RefCreate(x)
    option = relay.GlobalTypeVar("Option")
    constructor = relay.Constructor("None", [], option)
    nodes = {
        "function": relay.Function([x], x),
        "let": relay.Let(x, x, x),
        "call": relay.exp(x),
        "var": x,
        "if": relay.If(x, x, x),
        "tuple": relay.Tuple([x]),
        "tuple_getitem": relay.TupleGetItem(relay.Tuple([x]), 0),
        "global_var": relay.GlobalVar("main"),
        "op": relay.op.get("exp"),
        "constant": relay.const(np.float32(1)),
        "ref_create": made,
        "ref_read": relay.RefRead(made),
        "ref_write": relay.RefWrite(made, x),
        "constructor": constructor,
        "match": relay.Match(x, [relay.Clause(relay.PatternWildcard(), x)]),
    }
    for kind, node in nodes.items():
        assert Named().visit(node) == type(node).__name__
        with pytest.raises(NotImplementedError, match=f"ExprFunctor has no visit_{type(node).node_kind}"):
            getattr(relay.ExprFunctor(), f"visit_{kind}")(node)
    assert Named().visit(relay.Call(relay.Function([x], x), [x])) == "called"
    assert isinstance(tvm.relay.ExprVisitor(), relay.ExprFunctor)


def test_a_call_that_gives_several_values_is_an_expression() -> None:
    """What an operator with several results returns can stand wherever an expression can."""
    x = relay.var("x", shape=(4, 2))
    pieces = relay.split(x, 2)
    expected = pieces.astuple()
    assert relay.Function([x], pieces).body is expected
    assert relay.Tuple([x, pieces]).fields[1] is expected
    assert relay.Let(x, pieces, pieces).body is expected
    assert relay.If(x, pieces, pieces).true_branch is expected
    assert relay.TupleGetItem(pieces, 1).tuple_value is expected
