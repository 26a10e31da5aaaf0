"""Random numbers, the same in every run."""

from __future__ import annotations

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.common import random as draws
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


def _shape(node: GraphNode, shape: Expr) -> tuple[int, ...]:
    node.attributes.pop("seed", None)
    return tuple(node.ints(shape, "the shape"))


@converter("RandomUniform", "RANDOM_UNIFORM", "StatelessRandomUniform")
def random_uniform(node: GraphNode, shape: Expr, *seed: Expr) -> Expr:
    """Numbers from 0 to 1."""
    return _cast(node, draws.uniform(node, _shape(node, shape)))


@converter("RandomStandardNormal", "RANDOM_STANDARD_NORMAL", "StatelessRandomNormal")
def random_normal(node: GraphNode, shape: Expr, *seed: Expr) -> Expr:
    """Normally distributed numbers."""
    return _cast(node, draws.normal(node, _shape(node, shape)))


def _cast(node: GraphNode, data: RelayExpr) -> Expr:
    return relay.cast(data, str(node.attr("dtype", "float32")))
