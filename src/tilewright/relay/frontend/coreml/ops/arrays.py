"""Shapes, parts, products, reductions and constants."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.running import running
from tilewright.relay.frontend.common.sizes import (
    Size,
    broadcast_to,
    multiplied,
    reshaped,
    sizes_of,
)
from tilewright.relay.frontend.coreml.layers.arrays import REDUCTIONS, within_band
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS
from tilewright.relay.frontend.tensorflow.ops.matrices import products
from tilewright.relay.frontend.tensorflow.ops.shape import filled, joined, range_
from tilewright.relay.frontend.tensorflow.ops.slicing import gather_nd, gathered, subscripted

_NAMES: Final = {
    "reduce_sum": "Sum",
    "reduce_mean": "Mean",
    "reduce_max": "Max",
    "reduce_min": "Min",
    "reduce_prod": "Prod",
    "reduce_l1_norm": "L1",
    "reduce_l2_norm": "L2",
    "reduce_sum_square": "SumSquare",
    "reduce_log_sum": "LogSum",
    "reduce_log_sum_exp": "LogSumExp",
}
_FAR: Final = 2**31 - 1


# Reductions


def _reduced(node: OperationNode, *, function: Any) -> Expr:
    data = node.tensor()
    rank = node.rank(data)
    axes = [axis % rank for axis in node.integers("axes", range(rank))]
    made: Expr = function(data, axis=axes, keepdims=node.flag("keep_dims"))
    return made


for _name, _key in _NAMES.items():
    OPERATIONS.register(_name)(partial(_reduced, function=REDUCTIONS[_key]))


@OPERATIONS.register("reduce_argmax", "reduce_argmin")
def extreme_place(node: OperationNode) -> Expr:
    """The place of the largest or smallest element."""
    data = node.tensor()
    function = relay.argmax if node.op_type == "reduce_argmax" else relay.argmin
    axis = node.chosen_axis("axis", -1, node.rank(data))
    return relay.cast(function(data, axis=[axis], keepdims=node.flag("keep_dims")), "int32")


# Shapes


@OPERATIONS.register("shape")
def shape(node: OperationNode) -> Expr:
    """The sizes of a tensor."""
    return node.of_elements(sizes_of(node, node.tensor()), "int32")


@OPERATIONS.register("reshape")
def reshape(node: OperationNode) -> Expr:
    """The elements in another shape: 0 keeps a size, -1 is what is left."""
    data = node.tensor()
    have = sizes_of(node, data)
    wanted: list[Size] = [
        have[place] if isinstance(one, int) and one == 0 and place < len(have) else one
        for place, one in enumerate(node.elements(node.tensor("shape")))
    ]
    followed = node.scope.vectors.get(data)
    if followed is not None and len(wanted) <= 1:
        return node.of_elements(followed, node.dtype(data), scalar=not wanted)
    return reshaped(node, data, wanted)


@OPERATIONS.register("flatten2d")
def flatten2d(node: OperationNode) -> Expr:
    """A matrix: axes before one are rows."""
    data = node.tensor()
    sizes, axis = sizes_of(node, data), node.integer("axis", 1)
    return reshaped(node, data, [multiplied(sizes[:axis]), multiplied(sizes[axis:])])


@OPERATIONS.register("transpose")
def transpose(node: OperationNode) -> Expr:
    """Axes in another order."""
    data = node.tensor()
    return relay.transpose(data, [axis % node.rank(data) for axis in node.integers("perm")])


@OPERATIONS.register("squeeze")
def squeeze(node: OperationNode) -> Expr:
    """Axes of one left out."""
    data = node.tensor()
    rank = node.rank(data)
    followed = node.scope.vectors.get(data)
    if followed is not None:
        return node.of_elements(followed, node.dtype(data), scalar=True)
    axes = [axis % rank for axis in node.integers("axes", [])]
    return relay.squeeze(data, axis=axes or None)


@OPERATIONS.register("expand_dims")
def expand_dims(node: OperationNode) -> Expr:
    """New axes of one, at these places of the result."""
    data, axes = node.tensor(), node.integers("axes")
    rank = node.rank(data) + len(axes)
    followed = node.scope.vectors.get(data)
    if followed is not None and rank == 1:
        return node.of_elements(followed, node.dtype(data))
    for axis in sorted(axis % rank for axis in axes):
        data = relay.expand_dims(data, axis)
    return data


@OPERATIONS.register("concat")
def concat(node: OperationNode) -> Expr:
    """Tensors one after another along an axis."""
    if node.flag("interleave"):
        raise node.fail("interleaved concatenation is not supported")
    parts = node.tensors()
    return joined(node, parts, node.chosen_axis("axis", 0, node.rank(parts[0])))


@OPERATIONS.register("stack")
def stack(node: OperationNode) -> Expr:
    """Tensors along a new axis."""
    parts = node.tensors()
    return relay.stack(parts, axis=node.chosen_axis("axis", 0, node.rank(parts[0]) + 1))


@OPERATIONS.register("split")
def split(node: OperationNode) -> list[Expr]:
    """Parts along an axis."""
    data = node.tensor()
    axis = node.chosen_axis("axis", 0, node.rank(data))
    sizes = node.integers("split_sizes", [])
    if not sizes:
        count = node.integer("num_splits", node.results)
        return [data] if count == 1 else list(relay.split(data, count, axis))
    if len(sizes) == 1:
        return [data]
    return list(relay.split(data, [int(end) for end in np.cumsum(sizes)[:-1]], axis))


@OPERATIONS.register("tile")
def tile(node: OperationNode) -> Expr:
    """The whole repeated along axes."""
    return relay.tile(node.tensor(), node.integers("reps"))


@OPERATIONS.register("reverse")
def reverse(node: OperationNode) -> Expr:
    """The last place of axes first."""
    data = node.tensor()
    for axis in node.integers("axes", range(node.rank(data))):
        data = relay.reverse(data, axis)
    return data


@OPERATIONS.register("pad")
def pad(node: OperationNode) -> Expr:
    """A border of the last axes: one number, the edge, or what is inside it reflected."""
    data = node.tensor()
    flat = node.integers("pad")
    pairs = [(flat[place], flat[place + 1]) for place in range(0, len(flat), 2)]
    widths = [*[(0, 0)] * (node.rank(data) - len(pairs)), *pairs]
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    mode = node.text("mode", "constant")
    if mode not in modes:
        raise node.fail(f"the mode {mode!r} is not known")
    return relay.nn.pad(
        data, widths, node.constant(node.real("constant_val", 0.0), data), pad_mode=modes[mode]
    )


@OPERATIONS.register("sliding_windows")
def sliding_windows(node: OperationNode) -> Expr:
    """Windows of an axis along a new axis."""
    data = node.tensor()
    axis = node.chosen_axis("axis", 0, node.rank(data))
    size, step = node.integer("size", 1), node.integer("stride", 1)
    count = (node.static_shape(data)[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    return relay.take(data, const(places.astype("int32")), axis=axis)


# Parts


@OPERATIONS.register("slice_by_index")
def slice_by_index(node: OperationNode) -> Expr:
    """A part of every axis; masks say which bounds are open and which axes are left out."""
    data = node.tensor()
    begins, ends = node.elements(node.tensor("begin")), node.elements(node.tensor("end"))
    count = len(begins)
    steps = node.integers("stride", [1] * count)
    masks = [
        [bool(one) for one in node.array(name).reshape(-1)] if node.has(name) else [False] * count
        for name in ("begin_mask", "end_mask", "squeeze_mask")
    ]
    subscripts: list[Any] = []
    for place in range(count):
        opened, closed, gone = (mask[place] for mask in masks)
        if gone:
            subscripts.append(begins[place])
        else:
            first, last = None if opened else begins[place], None if closed else ends[place]
            subscripts.append(slice(first, last, steps[place]))
    return subscripted(node, data, subscripts)


@OPERATIONS.register("slice_by_size")
def slice_by_size(node: OperationNode) -> Expr:
    """A part of a size at a place; -1 means the rest of an axis."""
    begins, sizes = node.integers("begin"), node.integers("size")
    subscripts = [
        slice(begin, None if size == -1 else begin + size, 1)
        for begin, size in zip(begins, sizes, strict=True)
    ]
    return subscripted(node, node.tensor(), subscripts)


@OPERATIONS.register("gather")
def gather(node: OperationNode) -> Expr:
    """Parts along an axis by their places; negative places count from the end."""
    data, indices = node.tensor(), node.tensor("indices")
    axis = node.chosen_axis("axis", 0, node.rank(data))
    if node.integer("batch_dims", 0):
        return relay.take(data, indices, axis=axis, batch_dims=node.integer("batch_dims", 0))
    known = node.value(indices)
    if known is not None:
        extent = node.shape(data)[axis]
        if extent is not None:
            indices = const(np.where(known < 0, known + extent, known).astype(known.dtype))
        return gathered(node, data, indices, axis, 0)
    return relay.take(data, indices, axis=axis, mode="wrap")


@OPERATIONS.register("gather_along_axis")
def gather_along_axis(node: OperationNode) -> Expr:
    """Elements along an axis, by a place for each."""
    data = node.tensor()
    return relay.gather(data, node.chosen_axis("axis", 0, node.rank(data)), node.tensor("indices"))


@OPERATIONS.register("gather_nd")
def gather_nd_operation(node: OperationNode) -> Expr:
    """Elements or parts by vectors of places."""
    if node.integer("batch_dims", 0):
        raise node.fail("batch_dims is not supported")
    return gather_nd(node, node.tensor(), node.tensor("indices"))


@OPERATIONS.register("scatter_nd")
def scatter_nd(node: OperationNode) -> Expr:
    """Parts replaced or added to, by vectors of places."""
    data, indices = node.tensor("data"), node.tensor("indices")
    mode = node.text("mode", "add")
    modes = {"update": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}
    if mode not in modes:
        raise node.fail(f"the mode {mode!r} is not supported")
    rank = node.rank(indices)
    first = relay.transpose(indices, [rank - 1, *range(rank - 1)])
    return relay.scatter_nd(data, first, node.tensor("updates"), modes[mode])


@OPERATIONS.register("scatter_along_axis")
def scatter_along_axis(node: OperationNode) -> Expr:
    """Elements along an axis replaced or added to, by a place for each."""
    data, mode = node.tensor("data"), node.text("mode", "add")
    axis = node.chosen_axis("axis", 0, node.rank(data))
    if mode not in ("update", "add"):
        raise node.fail(f"the mode {mode!r} is not supported")
    function = relay.scatter if mode == "update" else relay.scatter_add
    return function(data, node.tensor("indices"), node.tensor("updates"), axis)


@OPERATIONS.register("topk")
def top_k(node: OperationNode) -> list[Expr]:
    """The largest or smallest elements along an axis, and where they are."""
    data = node.tensor()
    axis = node.chosen_axis("axis", -1, node.rank(data))
    made: Any = relay.topk(
        data, node.integer("k", 1), axis=axis, is_ascend=node.flag("ascending"), dtype="int32"
    )
    return [made[0], made[1]]


@OPERATIONS.register("argsort")
def argsort(node: OperationNode) -> Expr:
    """Where the elements are in order."""
    data = node.tensor()
    axis = node.chosen_axis("axis", -1, node.rank(data))
    return relay.argsort(data, axis=axis, is_ascend=node.flag("ascending"), dtype="int32")


@OPERATIONS.register("one_hot")
def one_hot(node: OperationNode) -> Expr:
    """A number at the place of each class, another elsewhere."""
    on = node.optional("on_value")
    kind = "int32" if on is None else node.dtype(on)
    values = [
        node.constant(node.real(name, default), kind) for name, default in (("on_value", 1), ("off_value", 0))
    ]
    depth = node.integer("one_hot_vector_size", 1)
    return relay.one_hot(node.tensor("indices"), values[0], values[1], depth, node.integer("axis", -1), kind)


@OPERATIONS.register("cumsum")
def cumsum(node: OperationNode) -> Expr:
    """Running sums along an axis."""
    data = node.tensor()
    axis = node.chosen_axis("axis", 0, node.rank(data))
    return running(relay.cumsum, data, axis, exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))


@OPERATIONS.register("band_part")
def band_part(node: OperationNode) -> Expr:
    """Matrices with zeros outside a band around the diagonal."""
    return within_band(node, node.tensor(), node.integer("lower", -1), node.integer("upper", -1))


@OPERATIONS.register("non_zero")
def non_zero(node: OperationNode) -> Expr:
    """The places of what is not zero."""
    data = node.tensor()
    return relay.cast(relay.argwhere(relay.not_equal(data, node.constant(0, data))), "int32")


# Constants


@OPERATIONS.register("fill")
def fill(node: OperationNode) -> Expr:
    """A tensor of one number."""
    value = node.optional("value")
    filler = node.constant(0, "float32") if value is None else relay.reshape(value, ())
    return filled(node, node.elements(node.tensor("shape")), filler)


@OPERATIONS.register("fill_like")
def fill_like(node: OperationNode) -> Expr:
    """A tensor of one number in the shape of another."""
    value = node.optional("value")
    filler = node.constant(0, "float32") if value is None else relay.reshape(value, ())
    return filled(node, sizes_of(node, node.tensor("ref_tensor")), filler)


@OPERATIONS.register("range_1d")
def range_1d(node: OperationNode) -> Expr:
    """Numbers from a start, by steps, up to an end."""
    return range_(node, node.tensor("start"), node.tensor("end"), node.tensor("step"))


# Products


@OPERATIONS.register("linear")
def linear(node: OperationNode) -> Expr:
    """The product of rows and a weight (outputs, inputs)."""
    made = products(node, node.tensor(), node.tensor("weight"), False, True)
    bias = node.optional("bias")
    return made if bias is None else relay.add(made, bias)


@OPERATIONS.register("matmul")
def matmul(node: OperationNode) -> Expr:
    """Products of matrices."""
    left, right = node.tensor("x"), node.tensor("y")
    row, column = node.rank(left) == 1, node.rank(right) == 1
    flips = [node.flag("transpose_x"), node.flag("transpose_y")]
    if row:
        left, flips[0] = relay.expand_dims(left, 0), False
    if column:
        right, flips[1] = relay.expand_dims(right, 1), False
    made = products(node, left, right, flips[0], flips[1])
    gone = [axis % node.rank(made) for axis, single in ((-2, row), (-1, column)) if single]
    return relay.squeeze(made, axis=gone) if gone else made


@OPERATIONS.register("einsum")
def einsum(node: OperationNode) -> Expr:
    """A sum of products by an equation."""
    return relay.einsum(node.tensors(), node.text("equation", ""))


@OPERATIONS.register("scaled_dot_product_attention")
def attention(node: OperationNode) -> Expr:
    """Attention of queries to keys and values, with what a mask adds or leaves out."""
    query, key, value = (node.tensor(name) for name in ("query", "key", "value"))
    size = node.static_shape(query)[-1]
    scores = relay.multiply(products(node, query, key, False, True), node.constant(size**-0.5, query))
    mask = node.optional("attn_mask")
    if mask is not None:
        if node.dtype(mask) == "bool":
            spread = broadcast_to(node, mask, sizes_of(node, scores))
            least = np.finfo(node.dtype(scores)).min
            scores = relay.where(
                spread, scores, filled(node, sizes_of(node, scores), node.constant(least, scores))
            )
        else:
            scores = relay.add(scores, mask)
    return products(node, relay.nn.softmax(scores, -1), value, False, False)
