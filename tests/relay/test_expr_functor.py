"""Visiting graph-level expressions."""

from __future__ import annotations

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
