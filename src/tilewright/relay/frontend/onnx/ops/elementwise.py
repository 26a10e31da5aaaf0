"""Operators that work element by element."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.registry import converter

_UNARY: dict[str, Any] = {"Exp": relay.exp, "Abs": relay.abs, "Neg": relay.negative}


def _register_unary(name: str, function: Any) -> None:
    @converter(name)
    def convert(node: Node, data: RelayExpr) -> RelayExpr:
        return function(data)  # type: ignore[no-any-return]


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)


@converter("Clip", since=1)
def clip_attributes(node: Node, data: RelayExpr) -> RelayExpr:
    """Limits as attributes, up to opset 10."""
    return relay.clip(data, float(node.attr("min", -3.4e38)), float(node.attr("max", 3.4e38)))


@converter("Clip", since=11)
def clip(
    node: Node, data: RelayExpr, low: RelayExpr | None = None, high: RelayExpr | None = None
) -> RelayExpr:
    """Limits as inputs."""
    if low is not None:
        data = relay.maximum(data, low)
    return data if high is None else relay.minimum(data, high)
