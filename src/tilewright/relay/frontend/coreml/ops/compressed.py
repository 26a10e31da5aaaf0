"""Weights that a program holds in fewer bits: they are computed when the model is read."""

from __future__ import annotations

import numpy as np

from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS
from tilewright.relay.frontend.coreml.weights import Array, unpacked


def _stored(node: OperationNode, value: Array) -> Expr:
    return node.scope.stored(node.name, np.ascontiguousarray(value))


@OPERATIONS.register("constexpr_cast")
def cast(node: OperationNode) -> Expr:
    """Weights in another element type."""
    names = {"fp16": "float16", "fp32": "float32"}
    kind = node.text("output_dtype", "fp32")
    return _stored(node, node.array("source_val").astype(names.get(kind, kind)))


@OPERATIONS.register("constexpr_affine_dequantize")
def affine_dequantize(node: OperationNode) -> Expr:
    """``scale * (x - zero_point)``, with numbers for all or along an axis."""
    data, scale = node.array("quantized_data"), node.array("scale")
    zero = node.array("zero_point").astype("float32")
    shape = [1] * data.ndim
    shape[node.chosen_axis("axis", 0, data.ndim)] = -1
    scales = scale.astype("float32").reshape(shape) if scale.ndim else scale.astype("float32")
    zeros = zero.reshape(shape) if zero.ndim else zero
    return _stored(node, ((data.astype("float32") - zeros) * scales).astype(scale.dtype))


@OPERATIONS.register("constexpr_lut_to_dense")
def lookup(node: OperationNode) -> Expr:
    """Entries of a table: one table for all with packed indices, or tables for blocks."""
    indices, table = node.array("indices"), node.array("lut")
    if node.has("shape"):
        shape = node.integers("shape")
        bits = int(table.size - 1).bit_length()
        numbers = unpacked(indices.tobytes(), bits, int(np.prod(shape)), False)
        return _stored(node, table[numbers].reshape(shape))
    if table.shape[-1] != 1:
        raise node.fail("tables of vectors are not supported")
    blocks = table.shape[:-2]
    spread = table[..., 0]
    for axis, (size, count) in enumerate(zip(indices.shape, blocks, strict=True)):
        spread = np.repeat(spread, size // count, axis)
    return _stored(node, np.take_along_axis(spread, indices[..., None].astype("int64"), -1)[..., 0])


@OPERATIONS.register("constexpr_sparse_to_dense")
def sparse_to_dense(node: OperationNode) -> Expr:
    """Elements where a mask is set, zero elsewhere."""
    held, mask = node.array("nonzero_data"), node.array("mask")
    if node.has("shape"):
        shape = node.integers("shape")
        mask = unpacked(mask.tobytes(), 1, int(np.prod(shape)), False).reshape(shape)
    made = np.zeros(mask.shape, held.dtype)
    if int(np.count_nonzero(mask)) != held.size:
        raise node.fail(f"the mask has {np.count_nonzero(mask)} elements and there are {held.size}")
    made[mask.astype("bool")] = held.reshape(-1)
    return _stored(node, made)


@OPERATIONS.register("constexpr_blockwise_shift_scale")
def blockwise(node: OperationNode) -> Expr:
    """``scale * (x - offset)`` with numbers for blocks of each axis."""
    data, scale = node.array("data"), node.array("scale")

    def spread(value: Array) -> Array:
        for axis, (size, count) in enumerate(zip(data.shape, value.shape, strict=True)):
            value = np.repeat(value, size // count, axis)
        return value.astype("float32")

    shifted = data.astype("float32")
    if node.has("offset"):
        shifted = shifted - spread(node.array("offset"))
    return _stored(node, (shifted * spread(scale)).astype(scale.dtype))
