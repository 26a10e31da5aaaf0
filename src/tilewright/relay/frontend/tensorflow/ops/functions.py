"""Calls of functions, and control flow of version 2, whose branches and bodies are functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
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


@converter("Case", "StatelessCase")
def case(node: TensorFlowNode, index: Expr, *inputs: Any) -> list[Any]:
    """The results of one of several functions, by its number; of the last one for any other number."""
    names = [str(name) for name in node.attr("branches")]
    return _chosen(node, index, names, 0, inputs)


def _chosen(
    node: TensorFlowNode, index: Expr, names: Sequence[str], first: int, inputs: Sequence[Any]
) -> list[Any]:
    if first == len(names) - 1:
        return node.graph.call(names[first], inputs)
    return branched(
        node,
        relay.equal(index, node.constant(first, index)),
        lambda: node.graph.call(names[first], inputs),
        lambda: _chosen(node, index, names, first + 1, inputs),
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
