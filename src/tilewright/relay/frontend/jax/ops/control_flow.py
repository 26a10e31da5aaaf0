"""Calls, branches and loops."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.ordering import top_k
from tilewright.relay.frontend.jax.registry import converter
from tilewright.relay.frontend.tensorflow.control_flow import branched, looped


@converter("func.call")
def call(node: JaxNode, *inputs: Expr) -> list[Expr]:
    """A function of the program, whose operations stand where it is called."""
    return node.graph.called(str(node.attr("callee")), inputs)


@converter("composite")
def composite(node: JaxNode, *inputs: Expr) -> list[Expr]:
    """An operation that comes with its definition, which is used unless there is something better."""
    if node.attr("name") == "chlo.top_k" and len(inputs) == 1:
        return top_k(node, inputs[0], int(node.attr("composite_attributes")["k"]))
    return node.graph.called(str(node.attr("decomposition")), inputs)


@converter("if")
def if_(node: JaxNode, condition: Expr) -> list[Expr]:
    """The results of one of two blocks."""
    yes, no = node.regions
    return branched(node, condition, lambda: node.graph.inside(yes, []), lambda: node.graph.inside(no, []))


@converter("case")
def case(node: JaxNode, number: Expr) -> list[Expr]:
    """The results of the block of a number; the last one for any other number."""
    blocks = node.regions

    def chosen(place: int) -> list[Expr]:
        if place == len(blocks) - 1:
            return node.graph.inside(blocks[place], [])
        known = node.value(number)
        if known is not None:
            return node.graph.inside(blocks[int(known)] if 0 <= int(known) < len(blocks) else blocks[-1], [])
        here = relay.equal(number, node.constant(place, number))
        return branched(node, here, lambda: node.graph.inside(blocks[place], []), lambda: chosen(place + 1))

    return chosen(0)


@converter("while")
def while_(node: JaxNode, *initial: Expr) -> list[Expr]:
    """A block repeated on its own results while another one holds."""
    test, body = node.regions
    return looped(
        node,
        list(initial),
        lambda values: node.graph.inside(test, values)[0],
        lambda values: node.graph.inside(body, values),
    )
