"""Gathering and scattering."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import broadcast_to, sizes_of
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.ops.slicing import gathered


@converter("gather", reads="X Index Axis")
def gather(node: PaddleNode, data: Expr, index: Expr, axis: Expr | None) -> Expr:
    """Parts along an axis by their places."""
    along = node.chosen_axis("axis", 0, node.rank(data), axis)
    if node.rank(index) == 2 and node.shape(index)[1] == 1:
        index = relay.squeeze(index, axis=[1])
    return gathered(node, data, index, along, 0)


@converter("index_select", reads="X Index")
def index_select(node: PaddleNode, data: Expr, index: Expr) -> Expr:
    """Parts along an axis by their places."""
    along = node.chosen_axis("dim", node.integer("axis", 0), node.rank(data))
    return relay.take(data, index, axis=along)


def _places_first(node: PaddleNode, index: Expr) -> Expr:
    rank = node.rank(index)
    return relay.transpose(index, [rank - 1, *range(rank - 1)]) if rank > 1 else relay.expand_dims(index, 0)


@converter("gather_nd", reads="X Index")
def gather_nd(node: PaddleNode, data: Expr, index: Expr) -> Expr:
    """Elements or parts by vectors of places along the last axis."""
    depth = node.static_shape(index)[-1]
    if node.rank(index) == 1:
        made = relay.gather_nd(data, relay.reshape(index, (depth, 1)), index_rank=depth)
        return relay.squeeze(made, axis=[0])
    return relay.gather_nd(data, _places_first(node, index), index_rank=depth)


@converter("take_along_axis", reads="Input Index", writes="Result")
def take_along_axis(node: PaddleNode, data: Expr, index: Expr) -> Expr:
    """Elements along an axis, by a place for each."""
    axis = node.chosen_axis("Axis", node.integer("axis", 0), node.rank(data))
    sizes = sizes_of(node, data)
    index = broadcast_to(
        node,
        index,
        [sizes_of(node, index)[place] if place == axis else sizes[place] for place in range(len(sizes))],
    )
    return relay.gather(data, axis, index)


@converter("index_sample", reads="X Index")
def index_sample(node: PaddleNode, data: Expr, index: Expr) -> Expr:
    """Elements of each row by their places."""
    return relay.gather(data, 1, index)


@converter("scatter", reads="X Ids Updates")
def scatter(node: PaddleNode, data: Expr, index: Expr, updates: Expr) -> Expr:
    """Rows replaced, or zeroed and summed."""
    if node.rank(index) == 2:
        index = relay.squeeze(index, axis=[1])
    places = relay.expand_dims(index, 0)
    if node.flag("overwrite", True):
        return relay.scatter_nd(data, places, updates, "update")
    cleared = relay.scatter_nd(data, places, relay.zeros_like(updates), "update")
    return relay.scatter_nd(cleared, places, updates, "add")


@converter("scatter_nd_add", reads="X Index Updates")
def scatter_nd_add(node: PaddleNode, data: Expr, index: Expr, updates: Expr) -> Expr:
    """Updates added at vectors of places along the last axis."""
    if node.rank(index) == 1:
        index, updates = relay.expand_dims(index, 0), relay.expand_dims(updates, 0)
    return relay.scatter_nd(data, _places_first(node, index), updates, "add")


@converter("put_along_axis", reads="Input Index Value", writes="Result")
def put_along_axis(node: PaddleNode, data: Expr, index: Expr, value: Expr) -> Expr:
    """Elements along an axis replaced or added to, by a place for each."""
    axis = node.chosen_axis("Axis", node.integer("axis", 0), node.rank(data))
    mode = node.text("Reduce", node.text("reduce", "assign"))
    value = broadcast_to(node, value, sizes_of(node, index))
    if mode == "assign":
        return relay.scatter(data, index, value, axis)
    if mode in ("add", "sum"):
        return relay.scatter_add(data, index, value, axis)
    raise node.fail(f"the reduction {mode!r} is not supported")


@converter("one_hot_v2", reads="X depth_tensor")
def one_hot(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """One at the place of each class, zero elsewhere."""
    depth = node.known("depth", given)[0]
    kind = node.kind("dtype", "float32")
    return relay.one_hot(data, node.constant(1, kind), node.constant(0, kind), depth, -1, kind)


@converter("where_index", reads="Condition")
def where_index(node: PaddleNode, condition: Expr) -> Expr:
    """The places of what is true."""
    return relay.cast(relay.argwhere(condition), "int64")


@converter("masked_select", reads="X Mask", writes="Y")
def masked_select(node: PaddleNode, data: Expr, mask: Expr) -> Expr:
    """The elements where a mask is true, one after the other."""
    places = relay.argwhere(broadcast_to(node, mask, sizes_of(node, data)))
    return relay.gather_nd(data, relay.transpose(places, [1, 0]), index_rank=node.rank(data))


@converter("sequence_mask", writes="Y", reads="X MaxLenTensor")
def sequence_mask(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """One for the steps of each sequence, zero after its end."""
    longest = node.known("maxlen", given)[0]
    if longest <= 0:
        raise node.fail("the length has to be given (maxlen)")
    steps = relay.arange(node.constant(longest, node.dtype(data)), dtype=node.dtype(data))
    inside = relay.less(steps, relay.expand_dims(data, node.rank(data)))
    return relay.cast(inside, node.kind("out_dtype", "int64"))


@converter("fill_diagonal_tensor", reads="X Y")
def fill_diagonal(node: PaddleNode, data: Expr, diagonal: Expr) -> Expr:
    """Matrices with another diagonal."""
    if node.rank(data) != 2 or node.integer("offset", 0):
        raise node.fail("only the main diagonal of one matrix is supported")
    return relay.matrix_set_diag(data, diagonal)


@converter("diag_v2")
def diagonal_matrix(node: PaddleNode, data: Expr) -> Expr:
    """A matrix with a vector as its diagonal."""
    if node.rank(data) != 1 or node.integer("offset", 0):
        raise node.fail("only a vector as the main diagonal is supported")
    sizes = sizes_of(node, data)
    empty = filled(node, [*sizes, *sizes], node.constant(node.real("padding_value", 0.0), data))
    return relay.matrix_set_diag(empty, data)
