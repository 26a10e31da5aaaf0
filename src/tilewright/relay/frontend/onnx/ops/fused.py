"""Activations that Microsoft's optimiser fuses into the operator before them."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node


def fused_activation(node: Node, data: Expr) -> Expr:
    """The activation that the attributes ``activation`` and ``activation_params`` name, of the result."""
    name = node.attr("activation", "")
    given = [float(item) for item in node.attr("activation_params", None) or []]

    def parameter(position: int, attribute: str, default: float) -> float:
        if position < len(given):
            return given[position]
        return float(node.attr(f"activation_{attribute}", default))

    if not name:
        return data
    if name == "Relu":
        return relay.nn.relu(data)
    if name == "Tanh":
        return relay.tanh(data)
    if name == "Sigmoid":
        return relay.sigmoid(data)
    if name == "LeakyRelu":
        return relay.nn.leaky_relu(data, parameter(0, "alpha", 0.01))
    if name == "Clip":
        return relay.clip(data, parameter(0, "min", -3.4028234e38), parameter(1, "max", 3.4028234e38))
    if name == "HardSigmoid":
        slope, shift = parameter(0, "alpha", 0.2), parameter(1, "beta", 0.5)
        line = data * node.constant(slope, data) + node.constant(shift, data)
        return relay.clip(line, 0.0, 1.0)
    if name == "Elu":
        alpha = node.constant(parameter(0, "alpha", 1.0), data)
        below = alpha * (relay.exp(relay.minimum(data, node.constant(0, data))) - node.constant(1, data))
        return relay.where(relay.greater(data, node.constant(0, data)), data, below)
    if name == "Softplus":
        zero = node.constant(0, data)
        return relay.maximum(data, zero) + relay.log(
            node.constant(1, data) + relay.exp(relay.negative(relay.abs(data)))
        )
    raise node.fail(f"the activation {name!r} is not supported")
