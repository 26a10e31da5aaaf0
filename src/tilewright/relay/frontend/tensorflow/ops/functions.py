"""Calls of functions, and control flow of version 2, whose branches and bodies are functions."""

from __future__ import annotations

from typing import Any

from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tensorflow.control_flow import branched, looped
from tilewright.relay.frontend.tensorflow.registry import converter
from tilewright.relay.frontend.tensorflow.tensorflow_node import TensorFlowNode


@converter("PartitionedCall", "StatefulPartitionedCall", "RemoteCall")
def partitioned_call(node: TensorFlowNode, *inputs: Any) -> list[Any]:
    """The results of a function."""
    return node.graph.call(str(node.attr("f")), inputs)


@converter("If", "StatelessIf")
def if_(node: TensorFlowNode, condition: Expr, *inputs: Any) -> list[Any]:
    """The results of one of two functions."""
    return branched(
        node,
        condition,
        lambda: node.graph.call(str(node.attr("then_branch")), inputs),
        lambda: node.graph.call(str(node.attr("else_branch")), inputs),
    )


@converter("While", "StatelessWhile")
def while_(node: TensorFlowNode, *inputs: Any) -> list[Any]:
    """A function repeated on its own results while another one holds."""
    return looped(
        node,
        list(inputs),
        lambda values: node.graph.call(str(node.attr("cond")), values)[0],
        lambda values: node.graph.call(str(node.attr("body")), values),
    )
