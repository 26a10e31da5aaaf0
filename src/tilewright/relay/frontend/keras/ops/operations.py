"""Operations of ``keras.ops`` that functional models contain between their layers."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import reshaped
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.registry import operation_converter
from tilewright.relay.frontend.tensorflow.ops import elementwise
from tilewright.relay.frontend.tensorflow.ops.matrices import products
from tilewright.relay.frontend.tensorflow.ops.slicing import subscripted

_BINARY: dict[str, Any] = {
    "Add": relay.add,
    "Subtract": relay.subtract,
    "Multiply": relay.multiply,
    "Divide": relay.divide,
    "TrueDivide": relay.divide,
    "Power": relay.power,
    "Maximum": relay.maximum,
    "Minimum": relay.minimum,
}
_UNARY: dict[str, Any] = {
    "Relu": relay.nn.relu,
    "Sigmoid": relay.sigmoid,
    "Tanh": relay.tanh,
    "Exp": relay.exp,
    "Log": relay.log,
    "Sqrt": relay.sqrt,
    "Rsqrt": relay.rsqrt,
    "Absolute": relay.abs,
    "Negative": relay.negative,
    "Erf": relay.erf,
    "Sin": relay.sin,
    "Cos": relay.cos,
}


def _tensor(node: LayerNode, given: Any, like: Any) -> Expr:
    return given if isinstance(given, ExprWithOp) else node.constant(given, like)


def _register_binary(name: str, function: Any) -> None:
    @operation_converter(name)
    def convert(node: LayerNode, left: Any, right: Any) -> Expr:
        like = left if isinstance(left, ExprWithOp) else right
        return function(_tensor(node, left, like), _tensor(node, right, like))  # type: ignore[no-any-return]


def _register_unary(name: str, function: Any) -> None:
    @operation_converter(name)
    def convert(node: LayerNode, data: Expr) -> Expr:
        return function(data)  # type: ignore[no-any-return]


for _name, _function in _BINARY.items():
    _register_binary(_name, _function)
for _name, _function in _UNARY.items():
    _register_unary(_name, _function)


@operation_converter("Silu")
def silu(node: LayerNode, data: Expr) -> Expr:
    """x times its sigmoid."""
    return relay.multiply(data, relay.sigmoid(data))


@operation_converter("Gelu")
def gelu(node: LayerNode, data: Expr) -> Expr:
    """x times the normal distribution's cumulative probability of x."""
    node.attributes["approximate"] = bool(getattr(node.layer, "approximate", True))
    return elementwise.gelu(node, data)


@operation_converter("Softmax")
def softmax(node: LayerNode, data: Expr) -> Expr:
    """Softmax along an axis."""
    return relay.nn.softmax(data, axis=int(node.layer.axis))


@operation_converter("Matmul")
def matmul(node: LayerNode, left: Expr, right: Expr) -> Expr:
    """Products of matrices."""
    return products(node, left, right, False, False)


@operation_converter("Reshape")
def reshape(node: LayerNode, data: Expr) -> Expr:
    """The elements in another shape."""
    return reshaped(node, data, [-1 if size is None else int(size) for size in node.layer.newshape])


@operation_converter("Transpose")
def transpose(node: LayerNode, data: Expr) -> Expr:
    """The axes in another order."""
    return relay.transpose(data, node.layer.axes)


@operation_converter("ExpandDims")
def expand_dims(node: LayerNode, data: Expr) -> Expr:
    """A new axis of one element."""
    return relay.expand_dims(data, int(node.layer.axis))


@operation_converter("Squeeze")
def squeeze(node: LayerNode, data: Expr) -> Expr:
    """Without axes of one element."""
    axis = node.layer.axis
    return relay.squeeze(data, axis=None if axis is None else [axis] if isinstance(axis, int) else list(axis))


@operation_converter("Concatenate")
def concatenate(node: LayerNode, parts: Any) -> Expr:
    """Tensors one after the other along an axis."""
    return relay.concatenate(list(parts), int(node.layer.axis) % node.rank(parts[0]))


@operation_converter("GetItem")
def get_item(node: LayerNode, data: Expr, key: Any) -> Expr:
    """Python's subscripts."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(one, ExprWithOp) for one in keys):
        raise node.fail("subscripts that are tensors are not supported")
    if Ellipsis in keys:
        place = keys.index(Ellipsis)
        room = node.rank(data) - sum(one is not None and one is not Ellipsis for one in keys)
        keys[place : place + 1] = [slice(None)] * room
    return subscripted(node, data, keys)


def _register_reduction(name: str, function: Any) -> None:
    @operation_converter(name)
    def convert(node: LayerNode, data: Expr) -> Expr:
        axis = node.layer.axis
        axes = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
        return function(data, axis=axes, keepdims=bool(node.layer.keepdims))  # type: ignore[no-any-return]


for _name, _function in {"Mean": relay.mean, "Sum": relay.sum, "Max": relay.max, "Min": relay.min}.items():
    _register_reduction(_name, _function)
