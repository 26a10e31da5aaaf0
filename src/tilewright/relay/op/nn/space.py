"""Space-to-depth, space-to-batch and their inverses; flattening; the FIFO buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.shapes import (
    Dimension,
    combine,
    dims,
    normal_axis,
    product,
    require_multiple,
    same,
    tensor,
)
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor


@attributes
class SubPixelAttrs(OpAttrs):
    """depth_to_space and space_to_depth; in mode DCR the block is the outer part of the channels, in CDR (also
    CRD, as ONNX spells it) the inner."""

    block_size: int = 1
    layout: str = "NCHW"
    mode: str = "DCR"

    def check(self) -> None:
        """Layout and mode must be known ones."""
        if self.layout not in ("NCHW", "NHWC"):
            raise OpAttributeInvalid(f"the layout is NCHW or NHWC, not {self.layout!r}")
        if self.mode not in ("DCR", "CDR", "CRD"):
            raise OpAttributeInvalid(f"the mode is DCR or CDR, not {self.mode!r}")


@attributes
class SpaceToBatchNDAttrs(OpAttrs):
    """space_to_batch_nd: blocks of the axes after the first, which are padded before."""

    block_shape: Any = ()
    paddings: Any = ()
    pad_value: float = 0.0


@attributes
class BatchToSpaceNDAttrs(OpAttrs):
    """batch_to_space_nd: blocks of the axes after the first, which are cropped after."""

    block_shape: Any = ()
    crops: Any = ()


@attributes
class FIFOBufferAttrs(OpAttrs):
    """fifo_buffer: the axis along which the buffer is moved."""

    axis: int = 0


# Flattening


def flatten_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A matrix with one row for each index of the first axis."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    shape = dims(data)
    if not shape:
        raise RelationError("a scalar cannot be flattened")
    return TensorType((shape[0], product(shape[1:])), data.dtype)


BATCH_FLATTEN = define(
    "nn.batch_flatten",
    arguments=("data",),
    relation=flatten_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.flatten(inputs[0])],
    reference=lambda attrs, data: data.reshape(data.shape[0], int(np.prod(data.shape[1:], dtype=np.int64))),
    gradient=lambda orig, grad: [call("reshape_like", grad, orig.args[0])],
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="All axes but the first as one.",
)


def batch_flatten(data: RelayExpr) -> Call:
    """All axes but the first as one."""
    return Call(BATCH_FLATTEN, (data,))


# Channels and space


def _divided(extent: Dimension, block: int, what: str) -> Dimension:
    require_multiple(extent, block, f"{what} of {extent} does not fall into blocks of {block}")
    return combine(lambda whole: whole // block, extent)


def _times(extent: Dimension, factor: int) -> Dimension:
    return combine(lambda whole: whole * factor, extent)


def depth_to_space_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Channels divided by the block's size squared, height and width times it."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    n, c, h, w = whole_extents(dims(data), attrs.layout, "NCHW", "the data")
    block = attrs.block_size
    shape = (n, _divided(c, block * block, "the channels"), _times(h, block), _times(w, block))
    return TensorType(laid_out(shape, "NCHW", attrs.layout, "the result"), data.dtype)


def space_to_depth_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Channels times the block's size squared, height and width divided by it."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    n, c, h, w = whole_extents(dims(data), attrs.layout, "NCHW", "the data")
    block = attrs.block_size
    shape = (n, _times(c, block * block), _divided(h, block, "the height"), _divided(w, block, "the width"))
    return TensorType(laid_out(shape, "NCHW", attrs.layout, "the result"), data.dtype)


def _depth_to_space_reference(attrs: Any, data: Any) -> Any:
    plain = converted_array(data, attrs.layout, "NCHW")
    n, _, h, w = plain.shape
    block = attrs.block_size
    if attrs.mode == "DCR":
        split = plain.reshape(n, block, block, -1, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        split = plain.reshape(n, -1, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return converted_array(split.reshape(n, -1, h * block, w * block), "NCHW", attrs.layout)


def _space_to_depth_reference(attrs: Any, data: Any) -> Any:
    plain = converted_array(data, attrs.layout, "NCHW")
    n, c, h, w = plain.shape
    block = attrs.block_size
    split = plain.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return converted_array(split.reshape(n, -1, h // block, w // block), "NCHW", attrs.layout)


DEPTH_TO_SPACE = define(
    "nn.depth_to_space",
    arguments=("data",),
    attrs=SubPixelAttrs,
    relation=depth_to_space_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.depth_to_space(inputs[0], attrs.block_size, attrs.layout, attrs.mode)
    ],
    reference=_depth_to_space_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="Channels spread over blocks of space.",
)

SPACE_TO_DEPTH = define(
    "nn.space_to_depth",
    arguments=("data",),
    attrs=SubPixelAttrs,
    relation=space_to_depth_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.space_to_depth(inputs[0], attrs.block_size, attrs.layout)
    ],
    reference=_space_to_depth_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="Blocks of space stacked into channels.",
)


def depth_to_space(data: RelayExpr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Call:
    """Channels spread over blocks of space, the block outermost among the channels (DCR) or innermost (CDR)."""
    return Call(DEPTH_TO_SPACE, (data,), SubPixelAttrs(block_size, layout, mode))


def space_to_depth(data: RelayExpr, block_size: int, layout: str = "NCHW") -> Call:
    """Blocks of space stacked into channels, the place in the block outermost."""
    return Call(SPACE_TO_DEPTH, (data,), SubPixelAttrs(block_size, layout, "DCR"))


# Batch and space


def _check_blocks(data: TensorType, blocks: Sequence[int], pairs: Sequence[Any], what: str) -> None:
    if len(blocks) != len(pairs) or len(blocks) >= len(data.shape):
        raise RelationError(
            f"{len(blocks)} blocks and {len(pairs)} {what} are given for data of {len(data.shape)} dimensions"
        )


def space_to_batch_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The batch times all blocks; each blocked axis padded and divided."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _check_blocks(data, attrs.block_shape, attrs.paddings, "paddings")
    shape = list(dims(data))
    for axis, (block, pair) in enumerate(zip(attrs.block_shape, attrs.paddings, strict=True), 1):
        shape[0] = _times(shape[0], block)
        padded = combine(lambda extent, more=pair[0] + pair[1]: extent + more, shape[axis])
        shape[axis] = _divided(padded, block, f"axis {axis}")
    return TensorType(shape, data.dtype)


def batch_to_space_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The batch divided by all blocks; each blocked axis multiplied and cropped."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    _check_blocks(data, attrs.block_shape, attrs.crops, "crops")
    shape = list(dims(data))
    for axis, (block, pair) in enumerate(zip(attrs.block_shape, attrs.crops, strict=True), 1):
        shape[0] = _divided(shape[0], block, "the batch")
        shape[axis] = combine(
            lambda extent, block=block, less=pair[0] + pair[1]: extent * block - less, shape[axis]
        )
    return TensorType(shape, data.dtype)


def _columns(pairs: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _space_to_batch_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    before, after = _columns(attrs.paddings)
    return [topi.nn.space_to_batch_nd(inputs[0], attrs.block_shape, before, after, attrs.pad_value)]


def _batch_to_space_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.nn.batch_to_space_nd(inputs[0], attrs.block_shape, *_columns(attrs.crops))]


def _space_to_batch_reference(attrs: Any, data: Any) -> Any:
    blocks = attrs.block_shape
    count = len(blocks)
    widths = [(0, 0), *attrs.paddings, *[(0, 0)] * (data.ndim - count - 1)]
    padded = np.pad(data, widths, constant_values=attrs.pad_value)
    rest = padded.shape[count + 1 :]
    split: list[int] = [padded.shape[0]]
    for extent, block in zip(padded.shape[1 : count + 1], blocks, strict=True):
        split += [extent // block, block]
    order = [
        *range(2, 2 * count + 1, 2),
        0,
        *range(1, 2 * count, 2),
        *range(2 * count + 1, 2 * count + 1 + len(rest)),
    ]
    outer = [extent // block for extent, block in zip(padded.shape[1 : count + 1], blocks, strict=True)]
    return padded.reshape(*split, *rest).transpose(order).reshape(-1, *outer, *rest)


def _batch_to_space_reference(attrs: Any, data: Any) -> Any:
    blocks = attrs.block_shape
    count = len(blocks)
    extents, rest = data.shape[1 : count + 1], data.shape[count + 1 :]
    split = data.reshape(*blocks, -1, *extents, *rest)
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    whole = [extent * block for extent, block in zip(extents, blocks, strict=True)]
    made = split.transpose(order).reshape(-1, *whole, *rest)
    inner = tuple(
        slice(first, extent - last) for (first, last), extent in zip(attrs.crops, whole, strict=True)
    )
    return made[(slice(None), *inner)]


SPACE_TO_BATCH_ND = define(
    "nn.space_to_batch_nd",
    arguments=("data",),
    attrs=SpaceToBatchNDAttrs,
    relation=space_to_batch_relation,
    compute=_space_to_batch_compute,
    reference=_space_to_batch_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="Blocks of space stacked into the batch.",
)

BATCH_TO_SPACE_ND = define(
    "nn.batch_to_space_nd",
    arguments=("data",),
    attrs=BatchToSpaceNDAttrs,
    relation=batch_to_space_relation,
    compute=_batch_to_space_compute,
    reference=_batch_to_space_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="The batch spread over blocks of space.",
)


def space_to_batch_nd(data: RelayExpr, block_shape: Any, paddings: Any, pad_value: float = 0) -> Call:
    """The axes after the first padded, cut into blocks, and the places in a block stacked into the batch."""
    attrs = SpaceToBatchNDAttrs(tuple(block_shape), tuple(tuple(pair) for pair in paddings), pad_value)
    return Call(SPACE_TO_BATCH_ND, (data,), attrs)


def batch_to_space_nd(data: RelayExpr, block_shape: Any, crops: Any) -> Call:
    """The batch spread over blocks of the axes after the first, which are then cropped."""
    attrs = BatchToSpaceNDAttrs(tuple(block_shape), tuple(tuple(pair) for pair in crops))
    return Call(BATCH_TO_SPACE_ND, (data,), attrs)


# A buffer that is moved along


def fifo_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The buffer's type; new data have its shape but for the axis along which it is moved."""
    data, buffer = tensor(types[0], "the data"), tensor(types[1], "the buffer")
    if data is None or buffer is None:
        return None
    if len(data.shape) != len(buffer.shape):
        raise RelationError(
            f"data of {len(data.shape)} dimensions do not fit into a buffer of {len(buffer.shape)}"
        )
    moved = normal_axis(attrs.axis, len(buffer.shape))
    for axis, (given, wanted) in enumerate(zip(dims(data), dims(buffer), strict=True)):
        if axis != moved:
            same(given, wanted, f"axis {axis} of the data and of the buffer")
    return buffer


def _fifo_reference(attrs: Any, data: Any, buffer: Any) -> Any:
    axis = attrs.axis % buffer.ndim
    joined = np.concatenate([buffer, data], axis=axis)
    return joined.take(range(data.shape[axis], joined.shape[axis]), axis=axis)


FIFO_BUFFER = define(
    "nn.fifo_buffer",
    arguments=("data", "buffer"),
    attrs=FIFOBufferAttrs,
    relation=fifo_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.fifo_buffer(inputs[0], inputs[1], attrs.axis)],
    reference=_fifo_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=3,
    description="A buffer moved along by new data.",
)


def fifo_buffer(data: RelayExpr, buffer: RelayExpr, axis: int) -> Call:
    """``buffer`` moved along ``axis``, ``data`` behind it, and as much dropped in front."""
    return Call(FIFO_BUFFER, (data, buffer), FIFOBufferAttrs(axis))
