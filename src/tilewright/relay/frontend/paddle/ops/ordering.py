"""Sorting, the largest elements, and running sums."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.running import running
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter


@converter("argsort", writes="Out Indices")
def argsort(node: PaddleNode, data: Expr) -> tuple[Expr, Expr]:
    """Elements in order, and where they were."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    places = relay.argsort(data, axis=axis, is_ascend=not node.flag("descending"), dtype="int64")
    return relay.gather(data, axis, places), places


@converter("top_k_v2", "top_k", reads="X K", writes="Out Indices")
def top_k(node: PaddleNode, data: Expr, given: Expr | None) -> tuple[Expr, Expr]:
    """The largest or smallest elements along an axis, and where they are."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    count = node.known("k", given)[0]
    made: Any = relay.topk(
        data, count, axis=axis, ret_type="both", is_ascend=not node.flag("largest", True), dtype="int64"
    )
    return made[0], made[1]


@converter("cumsum", reads="X AxisTensor")
def cumsum(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """Running sums along an axis, or over everything."""
    sizes = node.shape(data)
    if node.flag("flatten"):
        data, axis = relay.reshape(data, (-1,)), 0
    else:
        axis = node.chosen_axis("axis", -1, len(sizes), given)
    return running(relay.cumsum, data, axis, exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))


@converter("cumprod")
def cumprod(node: PaddleNode, data: Expr) -> Expr:
    """Running products along an axis."""
    return relay.cumprod(data, axis=node.chosen_axis("dim", 0, node.rank(data)))
