"""Branches and loops, whose bodies are other graphs of the model."""

from __future__ import annotations

from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tensorflow.control_flow import branched, looped
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.registry import lite_converter


@lite_converter("IF")
def if_(node: LiteNode, condition: Expr, *inputs: Expr) -> list[Expr]:
    """The results of one of two graphs."""
    return branched(
        node,
        condition,
        lambda: node.graph.inside(int(node.attr("then_subgraph")), inputs),
        lambda: node.graph.inside(int(node.attr("else_subgraph")), inputs),
    )


@lite_converter("WHILE")
def while_(node: LiteNode, *inputs: Expr) -> list[Expr]:
    """A graph repeated on its own results while another one holds."""
    return looped(
        node,
        list(inputs),
        lambda values: node.graph.inside(int(node.attr("cond_subgraph")), values)[0],
        lambda values: node.graph.inside(int(node.attr("body_subgraph")), values),
    )


@lite_converter("CALL_ONCE")
def call_once(node: LiteNode) -> list[Expr]:
    """The initialisation of variables, which run once: nothing is left of it where there are no variables."""
    return []
