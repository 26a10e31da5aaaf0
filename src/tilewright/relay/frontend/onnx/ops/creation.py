"""Operators that create tensors from nothing, or from a shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.onnx.low_precision import LOW_PRECISION_TYPES
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter
from tilewright.relay.frontend.onnx.tensors import array_of, dense_array, dtype_name

RANGE_LIMIT = 1 << 20
"""Elements: a longer range is computed when the program runs."""


@converter("Constant")
def constant(node: Node) -> RelayExpr:
    """The value of an attribute."""
    value = node.attr("value", None)
    if value is not None:
        return node.graph.mark(Constant(array_of(value)), LOW_PRECISION_TYPES.get(value.data_type))
    sparse = node.attr("sparse_value", None)
    if sparse is not None:
        return Constant(dense_array(sparse))
    for name, dtype in (
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        found = node.attr(name, None)
        if found is not None:
            return const(np.asarray(found, dtype=dtype))
    raise node.fail("constants of strings are not supported")


@converter("ConstantOfShape")
def constant_of_shape(node: Node, shape: RelayExpr) -> RelayExpr:
    """One value in a shape that is an input."""
    given = node.attr("value", None)
    value = np.zeros(1, "float32") if given is None else array_of(given)
    if value.size != 1:
        raise node.fail(f"the value has {value.size} elements, not one")
    extents = node.value(shape)
    wanted: Any = shape if extents is None else tuple(int(extent) for extent in extents.reshape(-1))
    made = relay.full(const(value.reshape(())), wanted, str(value.dtype))
    return node.graph.mark(made, None if given is None else LOW_PRECISION_TYPES.get(given.data_type))


@converter("EyeLike")
def eye_like(node: Node, data: RelayExpr) -> RelayExpr:
    """Ones on a diagonal, in the shape of a matrix."""
    element_type = node.attr("dtype", None)
    dtype = node.dtype(data) if element_type is None else dtype_name(int(element_type))
    offset = int(node.attr("k", 0))
    rows, columns = node.shape(data)
    if rows is not None and columns is not None and rows * columns <= RANGE_LIMIT:
        return const(np.eye(rows, columns, offset, dtype="bool").astype("float32"), dtype)
    sizes = relay.shape_of(data, "int64")
    down, across = (
        relay.arange(
            node.constant(0, "int64"),
            relay.take(sizes, node.constant(axis, "int64")),
            node.constant(1, "int64"),
            "int64",
        )
        for axis in (0, 1)
    )
    shifted = relay.add(relay.expand_dims(down, 1), node.constant(offset, "int64"))
    return relay.cast(relay.equal(shifted, relay.expand_dims(across, 0)), dtype)


@converter("Range")
@converter("Range", domain=MICROSOFT_DOMAIN)
def number_range(node: Node, start: RelayExpr, limit: RelayExpr, delta: RelayExpr) -> RelayExpr:
    """Numbers at equal distances."""
    dtype = node.dtype(start)
    known = [node.value(one) for one in (start, limit, delta)]
    if all(value is not None for value in known):
        begin, end, by = (value.reshape(()).item() for value in known if value is not None)
        if by == 0:
            raise node.fail("the step is zero")
        whole = isinstance(by, int)
        count = max(0, -((begin - end) // by) if whole else math.ceil((end - begin) / by))
        if count <= RANGE_LIMIT:
            return const(begin + np.arange(count) * by, dtype)
    first, last, step = (relay.reshape(one, ()) if node.rank(one) else one for one in (start, limit, delta))
    return relay.arange(first, last, step, dtype)
