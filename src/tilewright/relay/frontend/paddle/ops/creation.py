"""Tensors that a program makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.random import normal, uniform
from tilewright.relay.frontend.common.sizes import sizes_of
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter
from tilewright.relay.frontend.tensorflow.ops.shape import filled, range_


@converter("fill_constant", reads="ShapeTensor ValueTensor ShapeTensorList*")
def fill_constant(node: PaddleNode, wanted: Expr | None, given: Expr | None, parts: list[Expr]) -> Expr:
    """A tensor of one number."""
    kind = node.kind("dtype", "float32")
    sizes = node.sizes("shape", wanted, parts)
    if given is not None:
        return filled(node, sizes, relay.reshape(relay.cast(given, kind), ()))
    return filled(node, sizes, node.constant(_number(node, kind), kind))


def _number(node: PaddleNode, kind: str) -> Any:
    """The number that a constant is filled with; the text of it is exact where both are there."""
    text = node.text("str_value")
    found = float(text) if text else node.real("value", 0.0)
    if kind == "bool":
        return bool(found)
    if "int" not in kind:
        return found
    return int(text) if text and text.lstrip("-").isdigit() else int(found)


@converter("fill_constant_batch_size_like", reads="Input")
def fill_like_batch(node: PaddleNode, data: Expr) -> Expr:
    """A tensor of one number with one size taken from another tensor."""
    kind = node.kind("dtype", "float32")
    sizes = node.sizes("shape")
    sizes[node.integer("output_dim_idx", 0)] = sizes_of(node, data)[node.integer("input_dim_idx", 0)]
    return filled(node, sizes, node.constant(_number(node, kind), kind))


@converter("fill_any_like", reads="X ValueTensor")
def fill_any_like(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """A tensor of one number in the shape of another."""
    kind = node.kind("dtype", node.dtype(data))
    if given is not None:
        return filled(node, sizes_of(node, data), relay.reshape(relay.cast(given, kind), ()))
    return filled(node, sizes_of(node, data), node.constant(_number(node, kind), kind))


@converter("fill_zeros_like")
def zeros_like(node: PaddleNode, data: Expr) -> Expr:
    """Zeros in the shape of a tensor."""
    return relay.zeros_like(data)


@converter("assign_value", reads="")
def assign_value(node: PaddleNode) -> Expr:
    """A tensor that the program holds."""
    kind = node.kind("dtype", "float32")
    held: list[Any] = []
    for name in ("values", "fp32_values", "int32_values", "int64_values", "bool_values"):
        held = list(node.attr(name, None) or [])
        if held:
            break
    return const(np.asarray(held, kind).reshape(node.integers("shape", [len(held)])))


@converter("range", reads="Start End Step")
def arange(node: PaddleNode, start: Expr, end: Expr, step: Expr) -> Expr:
    """Numbers from a start, by steps, up to an end."""
    kind = node.kind("dtype", node.dtype(start))
    scalars: list[Expr] = [relay.reshape(relay.cast(one, kind), ()) for one in (start, end, step)]
    known = [node.value(one) for one in (start, end, step)]
    if all(one is not None for one in known):
        scalars = [node.constant(one.reshape(-1)[0].item(), kind) for one in known if one is not None]
    return range_(node, *scalars)


@converter("linspace", reads="Start Stop Num")
def linspace(node: PaddleNode, start: Expr, stop: Expr, count: Expr) -> Expr:
    """Numbers at equal distances."""
    kind = node.kind("dtype", "float32")
    steps = int(node.number(count, "the count"))
    weights = np.arange(steps) / max(steps - 1, 1)
    first, last = (relay.cast(relay.reshape(one, ()), "float32") for one in (start, stop))
    made = relay.add(first, relay.multiply(relay.subtract(last, first), const(weights.astype("float32"))))
    return relay.cast(made, kind)


@converter("eye", reads="RowsTensor ColumnsTensor")
def eye(node: PaddleNode, given: Expr | None, others: Expr | None) -> Expr:
    """Ones on the diagonal."""
    rows = node.known("num_rows", given)[0]
    columns = node.known("num_columns", others, default=[-1])[0]
    return const(np.eye(rows, None if columns < 0 else columns).astype(node.kind("dtype", "float32")))


@converter("tril_triu")
def triangle(node: PaddleNode, data: Expr) -> Expr:
    """Matrices with zeros above or below a diagonal."""
    rows, columns = node.static_shape(data)[-2:]
    keep = np.tril if node.flag("lower", True) else np.triu
    inside = keep(np.ones((rows, columns), "bool"), node.integer("diagonal", 0))
    return relay.where(const(inside), data, relay.zeros_like(data))


@converter("uniform_random", reads="ShapeTensor ShapeTensorList*")
def uniform_random(node: PaddleNode, wanted: Expr | None, parts: list[Expr]) -> Expr:
    """Random numbers between two bounds."""
    low, high = node.real("min", -1.0), node.real("max", 1.0)
    drawn = uniform(node, tuple(node.known("shape", wanted, parts)))
    made = relay.add(relay.multiply(drawn, const(high - low, "float32")), const(low, "float32"))
    return relay.cast(made, node.kind("dtype", "float32"))


@converter("gaussian_random", reads="ShapeTensor ShapeTensorList*")
def gaussian_random(node: PaddleNode, wanted: Expr | None, parts: list[Expr]) -> Expr:
    """Normally distributed random numbers."""
    drawn = normal(node, tuple(node.known("shape", wanted, parts)))
    made = relay.multiply(drawn, const(node.real("std", 1.0), "float32"))
    return relay.cast(
        relay.add(made, const(node.real("mean", 0.0), "float32")), node.kind("dtype", "float32")
    )
