"""Shapes, and rearrangements of elements: reshaping, joining, splitting, repeating."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import LONGEST_VECTOR, Expr, GraphNode
from tilewright.relay.frontend.common.sizes import (
    Size,
    all_known,
    as_scalar,
    broadcast_to,
    multiplied,
    reshaped,
    size_of,
    sizes_of,
)
from tilewright.relay.frontend.tensorflow.ops.windows import image_layout
from tilewright.relay.frontend.tensorflow.registry import converter

MOST_SIZES: Final = 8
"""Longer vectors of integers that only the program knows are not shapes."""


@converter("Shape", "SHAPE")
def shape(node: GraphNode, data: Expr) -> Expr:
    """The sizes of a tensor."""
    return node.of_elements(sizes_of(node, data), str(node.attr("out_type", "int32")))


@converter("ShapeN")
def shape_n(node: GraphNode, *data: Expr) -> list[Expr]:
    """The sizes of several tensors."""
    return [shape(node, one) for one in data]


@converter("Rank", "RANK")
def rank(node: GraphNode, data: Expr) -> Expr:
    """The number of dimensions."""
    return const(node.rank(data), "int32")


@converter("Size")
def size(node: GraphNode, data: Expr) -> Expr:
    """The number of elements."""
    dtype = str(node.attr("out_type", "int32"))
    return node.of_elements([multiplied(sizes_of(node, data))], dtype, scalar=True)


@converter("Reshape")
def reshape(node: GraphNode, data: Expr, wanted: Expr) -> Expr:
    """The elements in another shape, of which one size may be -1."""
    sizes = node.elements(wanted, "the shape")
    elements = node.scope.vectors.get(data)
    if elements is not None and len(sizes) <= 1:
        return node.of_elements(elements, node.dtype(data), scalar=not sizes)
    return reshaped(node, data, sizes)


@converter("ExpandDims", "EXPAND_DIMS")
def expand_dims(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """A new axis of one element."""
    (place,) = node.ints(axis, "the axis")
    elements = node.scope.vectors.get(data)
    if elements is not None and node.rank(data) == 0:
        return node.of_elements(elements, node.dtype(data))
    return relay.expand_dims(data, place)


@converter("Squeeze", "SQUEEZE")
def squeeze(node: GraphNode, data: Expr) -> Expr:
    """Without axes of one element: those that are named, or all."""
    axes = [int(axis) for axis in node.attr("squeeze_dims", None) or node.attr("axis", None) or []]
    if not axes:
        axes = [place for place, extent in enumerate(node.shape(data)) if extent == 1]
    elements = node.scope.vectors.get(data)
    if elements is not None and axes and node.rank(data) == 1:
        return node.of_elements(elements, node.dtype(data), scalar=True)
    return relay.squeeze(data, axis=axes) if axes else data


@converter("Transpose", "TRANSPOSE")
def transpose(node: GraphNode, data: Expr, order: Expr | None = None) -> Expr:
    """The axes in another order."""
    if order is None:
        return relay.transpose(data)
    return relay.transpose(data, node.ints(order, "the order of the axes"))


@converter("Pack", "PACK")
def pack(node: GraphNode, *parts: Expr) -> Expr:
    """Tensors of one shape along a new axis."""
    axis = int(node.attr("axis", 0))
    rank_ = node.rank(parts[0])
    found = [node.followed(part) for part in parts]
    if rank_ == 0 and all(one is not None for one in found) and len(parts) <= 64:
        return node.of_elements([one[0] for one in found if one is not None], node.dtype(parts[0]))
    integers = node.dtype(parts[0]) in ("int32", "int64")
    if rank_ == 0 and integers and any(one is not None for one in found):
        return node.of_elements([node.elements(part)[0] for part in parts], node.dtype(parts[0]))
    return relay.stack(list(parts), axis=axis % (rank_ + 1))


@converter("Unpack", "UNPACK")
def unpack(node: GraphNode, data: Expr) -> list[Expr]:
    """The tensors along an axis."""
    axis = node.axis(0, node.rank(data))
    elements = node.scope.vectors.get(data)
    if elements is not None:
        return [node.of_elements([one], node.dtype(data), scalar=True) for one in elements]
    count = node.shape(data)[axis]
    count = int(node.attr("num", 0)) if count is None else count
    if count == 1:
        return [relay.squeeze(data, axis=[axis])]
    return [relay.squeeze(part, axis=[axis]) for part in relay.split(data, count, axis)]


def _are_sizes(node: GraphNode, parts: list[Expr]) -> bool:
    """True of short vectors of integers, as shapes are."""
    if node.rank(parts[0]) != 1 or node.dtype(parts[0]) not in ("int32", "int64"):
        return False
    extents = [node.shape(part)[0] for part in parts]
    return (
        all(extent is not None for extent in extents) and sum(extent or 0 for extent in extents) <= MOST_SIZES
    )


def joined(node: GraphNode, parts: list[Expr], axis: int) -> Expr:
    """Tensors one after the other along an axis."""
    found = [node.followed(part) for part in parts]
    if node.rank(parts[0]) == 1 and all(one is not None for one in found):
        whole: list[Size] = [item for one in found if one is not None for item in one]
        if len(whole) <= LONGEST_VECTOR:
            return node.of_elements(whole, node.dtype(parts[0]))
    if _are_sizes(node, parts) and any(one is not None for one in found):
        # Known sizes stay known beside those that only the program knows.
        return node.of_elements(
            [item for part in parts for item in node.elements(part)], node.dtype(parts[0])
        )
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis)


@converter("ConcatV2")
def concat_v2(node: GraphNode, *given: Expr) -> Expr:
    """Tensors one after the other along the axis that the last input names."""
    rank_ = node.rank(given[0])
    return joined(node, list(given[:-1]), int(node.number(given[-1], "the axis")) % rank_)


@converter("Concat")
def concat(node: GraphNode, axis: Expr, *parts: Expr) -> Expr:
    """Tensors one after the other along the axis that the first input names."""
    return joined(node, list(parts), int(node.number(axis, "the axis")) % node.rank(parts[0]))


@converter("Split", "SPLIT")
def split(node: GraphNode, axis: Expr, data: Expr) -> list[Expr]:
    """Equal parts along an axis."""
    along = int(node.number(axis, "the axis")) % node.rank(data)
    count = int(node.attr("num_split"))
    return list(relay.split(data, count, along)) if count > 1 else [data]


@converter("SplitV", "SPLIT_V")
def split_v(node: GraphNode, data: Expr, sizes: Expr, axis: Expr) -> list[Expr]:
    """Parts of given sizes along an axis; one of them may be -1, which is what is left."""
    along = int(node.number(axis, "the axis")) % node.rank(data)
    lengths = node.ints(sizes, "the sizes")
    if -1 in lengths:
        whole = node.static_shape(data)[along]
        lengths[lengths.index(-1)] = whole - sum(length for length in lengths if length != -1)
    if len(lengths) == 1:
        return [data]
    return list(relay.split(data, [int(end) for end in np.cumsum(lengths)[:-1]], along))


@converter("Tile", "TILE")
def tile(node: GraphNode, data: Expr, repeats: Expr) -> Expr:
    """The tensor repeated along its axes."""
    counts = node.elements(repeats, "the repeats")
    if all_known(counts):
        return relay.tile(data, counts)
    sizes = [multiplied([one, count]) for one, count in zip(sizes_of(node, data), counts, strict=True)]
    interleaved: list[Size] = []
    for count, extent in zip(counts, sizes_of(node, data), strict=True):
        interleaved += [count, extent]
    flat: list[Size] = []
    for extent in sizes_of(node, data):
        flat += [1, extent]
    spread = broadcast_to(node, reshaped(node, data, flat), interleaved)
    return reshaped(node, spread, sizes)


@converter("Fill", "FILL")
def fill(node: GraphNode, wanted: Expr, value: Expr) -> Expr:
    """A tensor of one number."""
    return filled(node, node.elements(wanted, "the shape"), value)


def filled(node: GraphNode, sizes: list[Size], value: Expr) -> Expr:
    """A tensor of these sizes, every element of which is a scalar."""
    if all_known(sizes):
        return relay.full(value, tuple(sizes), node.dtype(value)) if sizes else value
    return broadcast_to(node, value, sizes)


@converter("Empty")
def empty(node: GraphNode, wanted: Expr) -> Expr:
    """A tensor of zeros: what it holds does not matter, unless it is initialised."""
    return filled(node, node.elements(wanted, "the shape"), node.constant(0, str(node.attr("dtype"))))


@converter("ZerosLike", "ZEROS_LIKE")
def zeros_like(node: GraphNode, data: Expr) -> Expr:
    """Zeros in the shape of a tensor."""
    return relay.zeros_like(data)


@converter("OnesLike")
def ones_like(node: GraphNode, data: Expr) -> Expr:
    """Ones in the shape of a tensor."""
    return relay.ones_like(data)


@converter("Range", "RANGE")
def range_(node: GraphNode, start: Expr, limit: Expr, step: Expr) -> Expr:
    """Numbers from a start, by steps, up to a limit."""
    dtype = node.dtype(start)
    known = [node.value(one) for one in (start, limit, step)]
    if all(one is not None for one in known):
        numbers = [one.reshape(-1)[0].item() for one in known if one is not None]
        return const(np.arange(*numbers).astype(dtype))
    return relay.arange(start, limit, step, dtype)


@converter("LinSpace")
def linspace(node: GraphNode, start: Expr, stop: Expr, count: Expr) -> Expr:
    """Numbers at equal distances from a start to a stop."""
    steps = int(node.number(count, "the count"))
    weights = np.arange(steps) / max(steps - 1, 1)
    reach = relay.subtract(stop, start)
    return relay.add(start, relay.multiply(reach, node.constant(weights, start)))


@converter("BroadcastTo", "BROADCAST_TO")
def broadcast(node: GraphNode, data: Expr, wanted: Expr) -> Expr:
    """A tensor repeated along axes of one element and along new leading axes."""
    return broadcast_to(node, data, node.elements(wanted, "the shape"))


@converter("BroadcastArgs", "BROADCAST_ARGS")
def broadcast_args(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The shape that two shapes broadcast to."""
    one, other = node.elements(left), node.elements(right)
    count = max(len(one), len(other))
    one, other = ([*[1] * (count - len(sizes)), *sizes] for sizes in (one, other))
    found: list[Size] = []
    for first, second in zip(one, other, strict=True):
        if isinstance(first, int) and isinstance(second, int):
            if first != second and 1 not in (first, second):
                raise node.fail(f"the sizes {first} and {second} do not broadcast")
            found.append(second if first == 1 else first)
        elif isinstance(first, int) and first != 1:
            found.append(first)
        elif isinstance(second, int) and second != 1:
            found.append(second)
        else:
            found.append(relay.maximum(as_scalar(first), as_scalar(second)))
    return node.of_elements(found, node.dtype(left))


@converter("ReverseV2", "REVERSE_V2")
def reverse(node: GraphNode, data: Expr, axes: Expr) -> Expr:
    """The elements along axes from the last to the first."""
    for axis in node.ints(axes, "the axes"):
        data = relay.reverse(data, axis % node.rank(data))
    return data


@converter("ReverseSequence", "REVERSE_SEQUENCE")
def reverse_sequence(node: GraphNode, data: Expr, lengths: Expr) -> Expr:
    """The first elements of each sequence from the last to the first."""
    return relay.reverse_sequence(
        data, lengths, seq_axis=int(node.attr("seq_dim")), batch_axis=int(node.attr("batch_dim", 0))
    )


@converter("InvertPermutation")
def invert_permutation(node: GraphNode, data: Expr) -> Expr:
    """The permutation that undoes another."""
    return relay.invert_permutation(data)


@converter("Roll")
def roll(node: GraphNode, data: Expr, shift: Expr, axis: Expr) -> Expr:
    """Elements moved along axes; those that leave come back at the other end."""
    for by, along in zip(node.ints(shift, "the shift"), node.ints(axis, "the axis"), strict=True):
        extent = node.static_shape(data)[along]
        places = (np.arange(extent) - by) % extent
        data = relay.take(data, const(places.astype("int64")), axis=along % node.rank(data))
    return data


# Blocks


@converter("SpaceToBatch")
def space_to_batch(node: GraphNode, data: Expr, paddings: Expr) -> Expr:
    """Blocks of rows and columns as batches."""
    pads = node.required_value(paddings, "the paddings").reshape(-1, 2).tolist()
    return relay.nn.space_to_batch_nd(data, [int(node.attr("block_size"))] * 2, pads)


@converter("BatchToSpace")
def batch_to_space(node: GraphNode, data: Expr, crops: Expr) -> Expr:
    """Batches as blocks of rows and columns."""
    cut = node.required_value(crops, "the crops").reshape(-1, 2).tolist()
    return relay.nn.batch_to_space_nd(data, [int(node.attr("block_size"))] * 2, cut)


@converter("SpaceToBatchND", "SPACE_TO_BATCH_ND")
def space_to_batch_nd(node: GraphNode, data: Expr, block: Expr, paddings: Expr) -> Expr:
    """Blocks of space as batches."""
    pads = node.required_value(paddings, "the paddings").reshape(-1, 2).tolist()
    return relay.nn.space_to_batch_nd(data, node.ints(block, "the block"), pads)


@converter("BatchToSpaceND", "BATCH_TO_SPACE_ND")
def batch_to_space_nd(node: GraphNode, data: Expr, block: Expr, crops: Expr) -> Expr:
    """Batches as blocks of space."""
    cut = node.required_value(crops, "the crops").reshape(-1, 2).tolist()
    return relay.nn.batch_to_space_nd(data, node.ints(block, "the block"), cut)


@converter("DepthToSpace", "DEPTH_TO_SPACE")
def depth_to_space(node: GraphNode, data: Expr) -> Expr:
    """Channels as blocks of space."""
    return relay.nn.depth_to_space(data, int(node.attr("block_size")), image_layout(node), "DCR")


@converter("SpaceToDepth", "SPACE_TO_DEPTH")
def space_to_depth(node: GraphNode, data: Expr) -> Expr:
    """Blocks of space as channels."""
    return relay.nn.space_to_depth(data, int(node.attr("block_size")), image_layout(node))


# Padding


def pad_widths(node: GraphNode, paddings: Expr) -> list[list[int]]:
    """How many elements go before and after each axis."""
    found: list[list[int]] = node.required_value(paddings, "the paddings").reshape(-1, 2).tolist()
    return found


@converter("Pad", "PadV2")
def pad(node: GraphNode, data: Expr, paddings: Expr, value: Expr | None = None) -> Expr:
    """A border of one number."""
    filler = node.constant(0, data) if value is None else value
    if node.value(paddings) is None:
        return relay.nn.pad(data, relay.cast(paddings, "int64"), filler)
    return relay.nn.pad(data, pad_widths(node, paddings), filler)


@converter("MirrorPad", "MIRROR_PAD")
def mirror_pad(node: GraphNode, data: Expr, paddings: Expr) -> Expr:
    """A border that mirrors the elements next to it."""
    return relay.nn.mirror_pad(data, pad_widths(node, paddings), mode=str(node.attr("mode")))


# Diagonals


@converter("MatrixDiag", "MATRIX_DIAG")
def matrix_diag(node: GraphNode, diagonal: Expr) -> Expr:
    """Matrices that are zero off the diagonal."""
    sizes = sizes_of(node, diagonal)
    zeros = filled(node, [*sizes, sizes[-1]], node.constant(0, diagonal))
    return relay.matrix_set_diag(zeros, diagonal)


@converter("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v3(
    node: GraphNode, diagonal: Expr, place: Expr, rows: Expr, columns: Expr, padding: Expr
) -> Expr:
    """Matrices that have one number off their diagonals."""
    which = node.ints(place, "the diagonal")
    wanted = [int(node.number(one, "the size")) for one in (rows, columns)]
    filler = node.number(padding, "the padding")
    if which in ([0], [0, 0]) and filler == 0 and wanted == [-1, -1]:
        return matrix_diag(node, diagonal)
    if len(which) > 1 and which[0] != which[1] and wanted == [-1, -1]:
        raise node.fail("several diagonals need num_rows and num_cols")
    low, high = which[0], which[-1]
    sizes = sizes_of(node, diagonal)
    lead = sizes[: -2 if low != high else -1]
    length = node.static_shape(diagonal)[-1]
    least = [length + max(-high, 0), length + max(low, 0)]
    if wanted == [-1, -1]:
        least = [max(least)] * 2
    extents = [size if size != -1 else smallest for size, smallest in zip(wanted, least, strict=True)]
    whole = filled(node, [*lead, *extents], node.constant(filler, diagonal))
    default = "LEFT_LEFT" if node.op_type == "MatrixDiagV2" else "RIGHT_LEFT"
    return relay.matrix_set_diag(
        whole, diagonal, low if low == high else (low, high), str(node.attr("align", default))
    )


@converter("MatrixSetDiag", "MATRIX_SET_DIAG", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(node: GraphNode, data: Expr, diagonal: Expr, places: Expr | None = None) -> Expr:
    """Matrices with another diagonal, or with other diagonals side by side."""
    which: Any = 0
    if places is not None:
        given = node.ints(places, "the diagonals")
        which = given[0] if len(given) == 1 else tuple(given)
    default = "LEFT_LEFT" if node.op_type == "MatrixSetDiagV2" else "RIGHT_LEFT"
    return relay.matrix_set_diag(data, diagonal, which, str(node.attr("align", default)))


@converter("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(
    node: GraphNode, data: Expr, place: Expr | None = None, padding: Expr | None = None
) -> Expr:
    """The diagonal of matrices."""
    which = [0] if place is None else node.ints(place, "the diagonal")
    if which[0] != which[-1]:
        raise node.fail("only one diagonal is supported")
    rows, columns = node.static_shape(data)[-2:]
    above, below = max(which[0], 0), max(-which[0], 0)
    count = min(rows - below, columns - above)
    first = below * columns + above
    flat = reshaped(node, data, [*sizes_of(node, data)[:-2], rows * columns])
    places = first + np.arange(count, dtype="int64") * (columns + 1)
    return relay.take(flat, const(places), axis=node.rank(flat) - 1)


@converter("Diag")
def diagonal_tensor(node: GraphNode, data: Expr) -> Expr:
    """A tensor with twice the axes, zero where the first half of an index is not its second half."""
    shape = node.static_shape(data)
    count = int(np.prod(shape))
    return relay.reshape(matrix_diag(node, relay.reshape(data, (count,))), (*shape, *shape))


@converter("DiagPart")
def diagonal_part(node: GraphNode, data: Expr) -> Expr:
    """The elements whose index has two equal halves."""
    shape = node.static_shape(data)
    half = shape[: len(shape) // 2]
    count = int(np.prod(half))
    flat = relay.reshape(data, (count * count,))
    return relay.reshape(relay.take(flat, const(np.arange(count, dtype="int64") * (count + 1))), half)


@converter("MatrixBandPart")
def matrix_band_part(node: GraphNode, data: Expr, lower: Expr, upper: Expr) -> Expr:
    """Matrices with zeros outside a band around the diagonal."""
    below, above = int(node.number(lower, "num_lower")), int(node.number(upper, "num_upper"))
    row = relay.expand_dims(_places(node, data, -2), 1)
    column = relay.expand_dims(_places(node, data, -1), 0)
    distance = relay.subtract(column, row)
    inside = relay.ones_like(relay.cast(distance, "bool"))
    if below >= 0:
        inside = relay.logical_and(inside, relay.greater_equal(distance, const(-below, "int64")))
    if above >= 0:
        inside = relay.logical_and(inside, relay.less_equal(distance, const(above, "int64")))
    return relay.where(inside, data, relay.zeros_like(data))


def _places(node: GraphNode, data: Expr, axis: int) -> Expr:
    """The numbers of the elements along an axis."""
    return relay.arange(const(0, "int64"), as_scalar(size_of(node, data, axis)), const(1, "int64"), "int64")
