"""Shared subexpressions.

An expression is a graph, and evaluating a graph as a tree can take exponential time. Where the tree would be very
large, shared parts are computed once per evaluation of the whole: lazily, so that a branch that is not taken computes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.functor import post_order
from tilewright.support.node import Node

_LARGE = 20_000
_UNSET = object()


def shared_parts(expr: Node) -> list[Node]:
    """The subexpressions to compute once, inner ones first; none for an expression of ordinary size."""
    nodes = post_order(expr)
    sizes: dict[int, int] = {}
    parents: dict[int, int] = {}
    for node in nodes:
        total = 1
        for child in node.children():
            total += sizes[id(child)]
            parents[id(child)] = parents.get(id(child), 0) + 1
        sizes[id(node)] = total
    # The value of a part that uses a variable bound inside the expression may change while the whole is evaluated.
    if sizes[id(expr)] < _LARGE or any(node.node_kind in ("let", "reduce") for node in nodes):
        return []
    return [node for node in nodes if parents.get(id(node), 0) > 1 and node.children()]


def computed_once(slot: int, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A closure that keeps its value in the frame until ``forgetting`` clears it."""

    def once(frame: Any) -> Any:
        value = frame[slot]
        if value is _UNSET:
            value = frame[slot] = run(frame)
        return value

    return once


def forgetting(slots: Sequence[int], run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The closure of the whole, which starts with none of its parts computed."""

    def whole(frame: Any) -> Any:
        for slot in slots:
            frame[slot] = _UNSET
        return run(frame)

    return whole
