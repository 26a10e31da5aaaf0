"""Special functions: gamma, the inverse of the error function, quantiles of the normal distribution."""

from __future__ import annotations

import math

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common import special
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.registry import converter


@converter("aten::lgamma", "aten::special_gammaln", "prims::lgamma")
def lgamma(node: TorchNode, input: Operand) -> Expr:
    """The logarithm of gamma."""
    data = node.floating(input)
    return special.lgamma(data, node.dtype(data))


@converter("aten::digamma", "aten::special_digamma", "aten::special_psi", "prims::digamma")
def digamma(node: TorchNode, input: Operand) -> Expr:
    """The derivative of the logarithm of gamma."""
    data = node.floating(input)
    return special.digamma(data, node.dtype(data))


@converter("aten::erfinv", "aten::special_erfinv", "prims::erf_inv")
def erfinv(node: TorchNode, input: Operand) -> Expr:
    """The inverse of the error function."""
    data = node.floating(input)
    return special.erfinv(data, node.dtype(data))


@converter("aten::special_ndtri")
def ndtri(node: TorchNode, input: Operand) -> Expr:
    """Below which number a part of the normal distribution lies."""
    data = node.floating(input)
    centred = relay.multiply(data, node.constant(2, data)) - node.constant(1, data)
    return relay.multiply(special.erfinv(centred, node.dtype(data)), node.constant(math.sqrt(2), data))
