"""Windows of tensors as axes of their own, and sums of windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, size_of, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.creation import filled, positions
from tilewright.relay.frontend.torch.registry import converter

LARGEST_VIEW = 1 << 22
"""Elements of a view with arbitrary strides, whose places are a constant."""


@converter("aten::unfold", "aten::unfold_copy")
def unfold(node: TorchNode, input: Expr, dimension: int, size: int, step: int) -> Expr:
    """Windows of an axis; the places within a window are a new last axis."""
    if not node.rank(input):
        return relay.reshape(input, (1,))
    axis, rank = node.axis_of(dimension, node.rank(input)), node.rank(input)
    length = node.known_size(input, axis)
    count = (length - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)[None, :]
    found = relay.take(input, const(places.astype("int64")), axis=axis)
    order = [one for one in range(rank + 1) if one != axis + 1] + [axis + 1]
    return relay.transpose(found, order)


def _grid(
    sizes: list[int], kernel: list[int], dilation: list[int], stride: list[int]
) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Where in an image, flattened, each tap of each window is: (taps, windows); and how many windows each axis has."""
    counts = [
        (size - apart * (width - 1) - 1) // step + 1
        for size, width, apart, step in zip(sizes, kernel, dilation, stride, strict=True)
    ]
    rows, columns = (
        np.arange(width)[:, None] * apart + np.arange(count)[None, :] * step
        for width, apart, count, step in zip(kernel, dilation, counts, stride, strict=True)
    )
    flat = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    return flat.reshape(kernel[0] * kernel[1], -1).astype("int64"), counts


@converter("aten::im2col")
def im2col(node: TorchNode, input: Expr, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Expr:
    """The windows of images as columns."""
    single = node.rank(input) == 3
    data = relay.expand_dims(input, 0) if single else input
    kernel, apart, before, step = (
        node.spread(one, 2, name)
        for one, name in (
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    )
    if any(before):
        data = relay.nn.pad(data, [(0, 0), (0, 0), *((width, width) for width in before)], 0)
    batch, channels = sizes_of(node, data)[:2]
    sizes = node.spread(node.static_shape(data)[2:], 2, "the size of the image")
    places, _ = _grid(sizes, kernel, apart, step)
    found = relay.take(reshaped(node, data, [batch, channels, sizes[0] * sizes[1]]), const(places), axis=2)
    made = reshaped(node, found, [batch, multiplied([channels, len(places)]), places.shape[1]])
    return relay.squeeze(made, axis=[0]) if single else made


@converter("aten::col2im")
def col2im(
    node: TorchNode, input: Expr, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Expr:
    """Images from columns: where windows overlap, their elements are added."""
    single = node.rank(input) == 2
    data = relay.expand_dims(input, 0) if single else input
    size, kernel, apart, before, step = (
        node.spread(one, 2, name)
        for one, name in (
            (output_size, "output_size"),
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    )
    whole = [extent + 2 * width for extent, width in zip(size, before, strict=True)]
    places, _ = _grid(whole, kernel, apart, step)
    batch, rows = sizes_of(node, data)[:2]
    if not isinstance(rows, int):
        raise node.fail("the number of channels is not known")
    channels = rows // len(places)
    lines = relay.transpose(reshaped(node, data, [batch, channels, places.size]), (2, 0, 1))
    empty = filled(node, 0, [whole[0] * whole[1], batch, channels], node.dtype(data))
    added = relay.scatter_nd(empty, const(places.reshape(1, -1)), lines, "add")
    made = reshaped(node, relay.transpose(added, (1, 2, 0)), [batch, channels, *whole])
    if any(before):
        ends = [width + extent for width, extent in zip(before, size, strict=True)]
        made = relay.strided_slice(made, before, ends, [1, 1], axes=[2, 3])
    return relay.squeeze(made, axis=[0]) if single else made


@converter("aten::as_strided", "aten::as_strided_copy")
def as_strided(
    node: TorchNode, input: Expr, size: Any, stride: Any, storage_offset: int | None = None
) -> Expr:
    """Elements at places that follow from strides, of a tensor whose own elements are one after another."""
    if not node.attr("contiguous", True):
        raise node.fail(
            "as_strided reads memory of a tensor that is not contiguous: call contiguous() before it"
        )
    sizes, steps = node.known_ints(size, "size"), node.known_ints(stride, "stride")
    count = int(np.prod(sizes))
    if count > LARGEST_VIEW:
        raise node.fail(f"a view of {count} elements with arbitrary strides is not supported")
    places = np.full(sizes, int(storage_offset or 0), "int64")
    for axis, step in enumerate(steps):
        shape = [-1 if one == axis else 1 for one in range(len(sizes))]
        places = places + np.arange(sizes[axis]).reshape(shape) * step
    flat = reshaped(node, input, [-1])
    total = node.shape(flat)[0]
    if total is not None and total == count and bool((places.reshape(-1) == np.arange(count)).all()):
        return reshaped(node, input, sizes)
    return relay.take(flat, const(places.astype("int64")), axis=0)


# Diagonals


@converter("aten::diagonal", "aten::diagonal_copy")
def diagonal(node: TorchNode, input: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    """A diagonal of matrices, as the last axis."""
    rank = node.rank(input)
    one, two = node.axis_of(dim1, rank), node.axis_of(dim2, rank)
    rows, columns = node.known_size(input, one), node.known_size(input, two)
    count = max(min(rows - max(-offset, 0), columns - max(offset, 0)), 0)
    order = [axis for axis in range(rank) if axis not in (one, two)] + [one, two]
    data = relay.transpose(input, order)
    lead = sizes_of(node, data)[:-2]
    flat = reshaped(node, data, [*lead, rows * columns])
    first = max(-offset, 0) * columns + max(offset, 0)
    places = first + np.arange(count) * (columns + 1)
    return relay.take(flat, const(places.astype("int64")), axis=rank - 2)


@converter("aten::linalg_diagonal")
def linalg_diagonal(node: TorchNode, A: Expr, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Expr:
    """A diagonal of matrices, which are the last axes unless said otherwise."""
    return diagonal(node, A, offset, dim1, dim2)


@converter("aten::trace")
def trace(node: TorchNode, input: Expr) -> Expr:
    """The sum of the diagonal."""
    found = relay.sum(diagonal(node, input))
    return relay.sum(diagonal(node, node.cast(input, "int64"))) if node.is_integral(input) else found


@converter("aten::diag_embed")
def diag_embed(node: TorchNode, input: Expr, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Expr:
    """Matrices whose diagonals are the rows of a tensor."""
    rank = node.rank(input) + 1
    one, two = node.axis_of(dim1, rank), node.axis_of(dim2, rank)
    length = node.known_size(input, -1)
    size = length + abs(offset)
    padded = input
    if offset:
        widths = [(0, 0)] * (rank - 2) + [(max(offset, 0), max(-offset, 0))]
        padded = (
            relay.nn.pad(input, widths, 0)
            if node.dtype(input) != "bool"
            else node.cast(relay.nn.pad(relay.cast(input, "uint8"), widths, 0), "bool")
        )
    rows = relay.expand_dims(positions(node, size), 1)
    here = relay.equal(relay.add(rows, const(int(offset), "int64")), positions(node, size))
    made = relay.where(here, relay.expand_dims(padded, rank - 2), node.constant(0, input))
    rest = iter(range(rank - 2))
    order = [rank - 2 if axis == one else rank - 1 if axis == two else next(rest) for axis in range(rank)]
    return made if order == list(range(rank)) else relay.transpose(made, order)


@converter("aten::diag")
def diag(node: TorchNode, input: Expr, diagonal: int = 0) -> Expr:
    """A matrix from its diagonal, or the diagonal of a matrix."""
    if node.rank(input) == 1:
        return diag_embed(node, input, diagonal)
    return _diagonal(node, input, diagonal)


_diagonal = diagonal


@converter("aten::block_diag")
def block_diag(node: TorchNode, tensors: list[Expr]) -> Expr:
    """Matrices along the diagonal of a larger one."""
    dtype = node.result_dtype(*tensors)
    given = []
    for one in tensors:
        rank = node.rank(one)
        given.append(
            node.cast(
                one if rank == 2 else reshaped(node, one, [1, size_of(node, one, 0) if rank else 1]), dtype
            )
        )
    widths = [node.known_size(one, 1) for one in given]
    rows = []
    for place, one in enumerate(given):
        sides = [(0, 0), (sum(widths[:place]), sum(widths[place + 1 :]))]
        rows.append(relay.nn.pad(one, sides, 0))
    return rows[0] if len(rows) == 1 else relay.concatenate(rows, 0)
