"""Tensors made from nothing, or in the shape of others."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common import check_size, input_type
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


def _dtype(node: SymbolNode) -> str:
    found = node.text("dtype", "float32")
    return "float32" if found in ("None", "") else found


def _filled(node: SymbolNode, value: float) -> Expr:
    shape = node.numbers("shape", ())
    input_type(node.name, shape, _dtype(node))
    return relay.full(node.constant(value, _dtype(node)), shape, _dtype(node))


@converter("_zeros", "_npi_zeros")
def zeros(node: SymbolNode) -> Expr:
    """Zeros."""
    return _filled(node, 0)


@converter("_ones", "_npi_ones")
def ones(node: SymbolNode) -> Expr:
    """Ones."""
    return _filled(node, 1)


@converter("_full", "_npi_full")
def full(node: SymbolNode) -> Expr:
    """One number everywhere."""
    return _filled(node, node.number("value"))


@converter("zeros_like")
def zeros_like(node: SymbolNode, data: Expr) -> Expr:
    """Zeros in the shape of a tensor."""
    return relay.zeros_like(data)


@converter("ones_like")
def ones_like(node: SymbolNode, data: Expr) -> Expr:
    """Ones in the shape of a tensor."""
    return relay.ones_like(data)


@converter("_arange", "_npi_arange")
def arange(node: SymbolNode) -> Expr:
    """Numbers at equal distances, each repeated."""
    start, step = node.number("start", 0.0), node.number("step", 1.0)
    stop = None if node.text("stop", "None") == "None" else node.number("stop")
    low, high = (0.0, start) if stop is None else (start, stop)
    repeats = node.integer("repeat", 1)
    if step == 0:
        raise node.fail("the step is zero")
    check_size(node.where, input_type(node.name, (max(int((high - low) / step), 0) * repeats,), "float64"))
    return const(np.repeat(np.arange(low, high, step), repeats).astype(_dtype(node)))


@converter("_contrib_arange_like")
def arange_like(node: SymbolNode, data: Expr) -> Expr:
    """Numbers at equal distances, as many as an axis has places, or as there are elements."""
    shape = node.static_shape(data)
    if node.integer("repeat", 1) != 1:
        raise node.fail("repeat is not supported")
    axis = node.optional_integer("axis")
    sizes = shape if axis is None else (shape[axis],)
    start, step = node.number("start", 0.0), node.number("step", 1.0)
    values = start + step * np.arange(int(np.prod(sizes)))
    return const(values.reshape(sizes).astype(node.dtype(data)))


@converter("shape_array")
def shape_array(node: SymbolNode, data: Expr) -> Expr:
    """The shape as a vector."""
    return const(np.asarray(node.static_shape(data), "int64"))


@converter("size_array")
def size_array(node: SymbolNode, data: Expr) -> Expr:
    """The number of elements as a vector of one."""
    return const(np.asarray([np.prod(node.static_shape(data))], "int64"))
