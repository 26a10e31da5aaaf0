"""Shapes, parts, products, reductions and constants."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.common.running import running
from tilewright.relay.frontend.common.sizes import broadcast_to, reshaped, sizes_of
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.layers.elementwise import truth
from tilewright.relay.frontend.coreml.registry import LAYERS
from tilewright.relay.frontend.tensorflow.ops.matrices import products
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.ops.slicing import gather_nd, gathered, subscripted


def _numbers(values: Any) -> list[int]:
    return [int(one) for one in values]


# Shapes


@LAYERS.register("reshape")
def reshape(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Images in another shape of channels, height and width; the channels of a pixel may be beside each other."""
    target = _numbers(params.targetShape)
    if len(target) == 4:
        target = target[1:]
    if params.mode == "CHANNEL_LAST" and node.rank(data) == 4:
        data = relay.transpose(data, (0, 2, 3, 1))
        made = relay.reshape(data, (-1, *target[1:], target[0]))
        return relay.transpose(made, (0, 3, 1, 2))
    return relay.reshape(data, (-1, *target))


@LAYERS.register("reshapeStatic")
def reshape_static(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The elements in another shape."""
    return relay.reshape(data, _numbers(params.targetShape))


@LAYERS.register("rankPreservingReshape")
def reshape_same_rank(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Another shape of the same rank: 0 keeps a size, -1 is what is left."""
    return relay.reshape(data, _numbers(params.targetShape))


@LAYERS.register("reshapeLike")
def reshape_like(node: LayerNode, params: Message, data: Expr, other: Expr) -> Expr:
    """The elements in the shape of another tensor."""
    return relay.reshape_like(data, other)


@LAYERS.register("reshapeDynamic")
def reshape_dynamic(node: LayerNode, params: Message, data: Expr, shape: Expr) -> Expr:
    """The elements in a shape that is computed."""
    return reshaped(node, data, node.elements(shape))


@LAYERS.register("flattenTo2D")
def flatten_to_2d(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A matrix: axes before one are rows."""
    shape = node.static_shape(data)
    axis = params.axis % (len(shape) + 1) if params.axis >= 0 else params.axis + len(shape)
    return relay.reshape(data, (prod(shape[:axis]), prod(shape[axis:])))


@LAYERS.register("permute")
def permute(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Axes in another order, counted as sequence, channels, height and width."""
    order = _numbers(params.axis)
    return relay.transpose(data, order[: node.rank(data)])


@LAYERS.register("transpose")
def transpose(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Axes in another order."""
    return relay.transpose(data, _numbers(params.axes))


@LAYERS.register("squeeze")
def squeeze(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Axes of one left out."""
    if params.squeezeAll:
        return relay.squeeze(data)
    return relay.squeeze(data, axis=[axis % node.rank(data) for axis in params.axes])


@LAYERS.register("expandDims")
def expand_dims(node: LayerNode, params: Message, data: Expr) -> Expr:
    """New axes of one, at these places of the result."""
    rank = node.rank(data) + len(params.axes)
    for axis in sorted(axis % rank for axis in params.axes):
        data = relay.expand_dims(data, axis)
    return data


@LAYERS.register("concat")
def concat(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """Tensors one after another along the channels, or along the sequence."""
    if params.sequenceConcat:
        raise node.fail("concatenation along the sequence is not supported")
    return relay.concatenate(list(data), node.channel_axis(data[0]))


@LAYERS.register("concatND")
def concat_nd(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """Tensors one after another along an axis."""
    if params.interleave:
        raise node.fail("interleaved concatenation is not supported")
    return relay.concatenate(list(data), params.axis % node.rank(data[0]))


@LAYERS.register("stack")
def stack(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """Tensors along a new axis."""
    return relay.stack(list(data), axis=params.axis % (node.rank(data[0]) + 1))


@LAYERS.register("split")
def split(node: LayerNode, params: Message, data: Expr) -> list[Expr]:
    """Parts of one size along the channels."""
    return list(relay.split(data, int(params.nOutputs), node.channel_axis(data)))


@LAYERS.register("splitND")
def split_nd(node: LayerNode, params: Message, data: Expr) -> list[Expr]:
    """Parts along an axis."""
    axis = params.axis % node.rank(data)
    sizes = _numbers(params.splitSizes)
    if not sizes:
        return list(relay.split(data, int(params.numSplits), axis))
    return list(relay.split(data, [int(end) for end in np.cumsum(sizes)[:-1]], axis))


@LAYERS.register("tile")
def tile(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The whole repeated along axes."""
    return relay.tile(data, _numbers(params.reps))


@LAYERS.register("reverse")
def reverse(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The last place of axes first."""
    for axis, chosen in enumerate(params.reverseDim):
        data = relay.reverse(data, axis) if chosen else data
    return data


@LAYERS.register("broadcastToStatic")
def broadcast_static(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Axes of one repeated."""
    return relay.broadcast_to(data, _numbers(params.targetShape))


@LAYERS.register("broadcastToLike")
def broadcast_like(node: LayerNode, params: Message, data: Expr, other: Expr) -> Expr:
    """Axes of one repeated as in another tensor."""
    return broadcast_to(node, data, sizes_of(node, other))


@LAYERS.register("getShape")
def get_shape(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The sizes of a tensor."""
    return node.of_elements(sizes_of(node, data), "int32")


@LAYERS.register("constantPad")
def constant_pad(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A border of one number."""
    if params.padToGivenOutputSizeMode:
        raise node.fail("padding to a size is not supported")
    flat = _numbers(params.padAmounts)
    widths = [(flat[place], flat[place + 1]) for place in range(0, len(flat), 2)]
    return relay.nn.pad(data, widths, node.constant(params.value, data))


# Parts


@LAYERS.register("slice")
def slice_(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A part of the channels, rows or columns of images."""
    axis = node.rank(data) - {"CHANNEL_AXIS": 3, "HEIGHT_AXIS": 2, "WIDTH_AXIS": 1}[params.axis]
    step = int(params.stride) or 1
    subscripts: list[Any] = [slice(None)] * node.rank(data)
    end = None if params.endIndex == -1 else params.endIndex
    subscripts[axis] = slice(params.startIndex, end, step)
    return subscripted(node, data, subscripts)


@LAYERS.register("sliceStatic")
def slice_static(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A part of every axis; masks say which bounds are open and which axes are left out."""
    subscripts: list[Any] = []
    count = len(params.beginIds)
    squeezed = params.squeezeMasks or [False] * count
    for begin, opened, end, closed, step, gone in zip(
        params.beginIds,
        params.beginMasks,
        params.endIds,
        params.endMasks,
        params.strides,
        squeezed,
        strict=True,
    ):
        subscripts.append(begin if gone else slice(None if opened else begin, None if closed else end, step))
    return subscripted(node, data, subscripts)


@LAYERS.register("gather")
def gather(node: LayerNode, params: Message, data: Expr, indices: Expr) -> Expr:
    """Parts along an axis by their places."""
    return gathered(node, data, relay.cast(indices, "int32"), params.axis % node.rank(data), 0)


@LAYERS.register("gatherND")
def gather_nd_layer(node: LayerNode, params: Message, data: Expr, indices: Expr) -> Expr:
    """Elements or parts by vectors of places."""
    return gather_nd(node, data, relay.cast(indices, "int32"))


@LAYERS.register("gatherAlongAxis")
def gather_along_axis(node: LayerNode, params: Message, data: Expr, indices: Expr) -> Expr:
    """Elements along an axis, by a place for each."""
    return relay.gather(data, params.axis % node.rank(data), relay.cast(indices, "int32"))


@LAYERS.register("topK")
def top_k(node: LayerNode, params: Message, data: Expr, *count: Expr) -> list[Expr]:
    """The largest or smallest elements along an axis, and where they are."""
    wanted = int(node.number(count[0], "k")) if count else int(params.K)
    made: Any = relay.topk(
        data, wanted, axis=params.axis % node.rank(data), is_ascend=params.useBottomK, dtype="int32"
    )
    return [made[0], made[1]]


@LAYERS.register("argSort")
def arg_sort(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Where the elements are in order."""
    return relay.argsort(
        data, axis=params.axis % node.rank(data), is_ascend=not params.descending, dtype="int32"
    )


@LAYERS.register("argMax", "argMin")
def extreme_place(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The place of the largest or smallest element."""
    function = relay.argmax if node.op_type == "argMax" else relay.argmin
    return function(data, axis=[params.axis % node.rank(data)], keepdims=not params.removeDim)


@LAYERS.register("oneHot")
def one_hot(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A number at the place of each class, another elsewhere."""
    on, off = node.constant(params.onValue, "float32"), node.constant(params.offValue, "float32")
    return relay.one_hot(
        relay.cast(data, "int32"), on, off, int(params.oneHotVectorSize), params.axis, "float32"
    )


@LAYERS.register("cumSum")
def cum_sum(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Running sums along an axis."""
    axis = params.axis % node.rank(data)
    return running(relay.cumsum, data, axis, exclusive=params.excludeFinalSum, reverse=params.reverse)


@LAYERS.register("matrixBandPart", "lowerTriangular", "upperTriangular")
def band_part(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Matrices with zeros outside a band around the diagonal."""
    if node.op_type == "matrixBandPart":
        return within_band(node, data, params.numLower, params.numUpper)
    rows, columns = node.static_shape(data)[-2:]
    keep = np.tril if node.op_type == "lowerTriangular" else np.triu
    inside = keep(np.ones((rows, columns), "bool"), params.k)
    return relay.where(const(inside), data, relay.zeros_like(data))


def within_band(node: ModelNode, data: Expr, below: int, above: int) -> Expr:
    """Matrices with zeros outside a band; a negative number leaves that side as it is."""
    rows, columns = node.static_shape(data)[-2:]
    row, column = np.ogrid[:rows, :columns]
    inside = ((below < 0) | (row - column <= below)) & ((above < 0) | (column - row <= above))
    return relay.where(const(inside), data, relay.zeros_like(data))


@LAYERS.register("whereNonZero")
def where_non_zero(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The places of what is not zero."""
    return relay.argwhere(truth(node, data))


# Constants


@LAYERS.register("loadConstant", "loadConstantND")
def load_constant(node: LayerNode, params: Message) -> Expr:
    """A tensor that the network holds."""
    shape = _numbers(params.shape)
    return node.weight(params.data, [1, *shape] if node.op_type == "loadConstant" else shape, "data")


@LAYERS.register("fillStatic")
def fill_static(node: LayerNode, params: Message) -> Expr:
    """A tensor of one number."""
    return const(np.full(_numbers(params.targetShape), params.value, "float32"))


@LAYERS.register("fillLike")
def fill_like(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A tensor of one number in the shape of another."""
    return filled(node, sizes_of(node, data), node.constant(params.value, "float32"))


@LAYERS.register("rangeStatic")
def range_static(node: LayerNode, params: Message) -> Expr:
    """Numbers from a start, by steps, up to an end."""
    return const(np.arange(params.startValue, params.endValue, params.stepSizeValue).astype("float32"))


# Products


@LAYERS.register("batchedMatmul")
def batched_matmul(node: LayerNode, params: Message, left: Expr, *right: Expr) -> Expr:
    """Products of matrices, with a weight where there is only one input."""
    if right:
        return products(node, left, right[0], params.transposeA, params.transposeB)
    inputs, outputs = int(params.weightMatrixFirstDimension), int(params.weightMatrixSecondDimension)
    weight = node.weight(params.weights, (inputs, outputs), "weight")
    made = products(node, left, weight, params.transposeA, False)
    return relay.add(made, node.weight(params.bias, (outputs,), "bias")) if params.hasBias else made


@LAYERS.register("embedding", "embeddingND")
def embedding(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Columns of a table (outputs, inputs), which is stored like the weight of a product."""
    legacy = node.op_type == "embedding"
    rows = int(params.inputDim if legacy else params.vocabSize)
    columns = int(params.outputChannels if legacy else params.embeddingSize)
    table = node.permuted(node.weight(params.weights, (columns, rows), "weight"), (1, 0))
    if legacy and node.rank(data) > 2:
        made = relay.take(table, relay.reshape(relay.cast(data, "int32"), (-1,)), axis=0)
    elif not legacy and node.shape(data)[-1] == 1:
        made = relay.take(table, relay.squeeze(relay.cast(data, "int32"), axis=[node.rank(data) - 1]), axis=0)
    else:
        made = relay.take(table, relay.cast(data, "int32"), axis=0)
    return relay.add(made, node.weight(params.bias, (columns,), "bias")) if params.hasBias else made


@LAYERS.register("layerNormalization")
def layer_normalization(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Elements normalised over the last axes."""
    shape = _numbers(params.normalizedShape)
    gamma, beta = node.weight(params.gamma, shape, "gamma"), node.weight(params.beta, shape, "beta")
    return normalized(node, data, len(shape), gamma, beta, params.eps)


def normalized(
    node: ModelNode, data: Expr, count: int, gamma: Expr | None, beta: Expr | None, epsilon: float
) -> Expr:
    """Elements normalised over some of the last axes."""
    rank = node.rank(data)
    if count == 1 and gamma is not None and beta is not None:
        return relay.nn.layer_norm(data, gamma, beta, axis=-1, epsilon=epsilon)
    axes = list(range(rank - count, rank))
    centred = relay.subtract(data, relay.mean(data, axis=axes, keepdims=True))
    variance = relay.mean(relay.multiply(centred, centred), axis=axes, keepdims=True)
    made = relay.multiply(centred, relay.rsqrt(relay.add(variance, node.constant(epsilon, data))))
    if gamma is not None:
        made = relay.multiply(made, gamma)
    return made if beta is None else relay.add(made, beta)


# Reductions


def _norm1(data: Expr, **how: Any) -> Expr:
    return relay.sum(relay.abs(data), **how)


def _sum_square(data: Expr, **how: Any) -> Expr:
    return relay.sum(relay.multiply(data, data), **how)


def _norm2(data: Expr, **how: Any) -> Expr:
    return relay.sqrt(_sum_square(data, **how))


def _log_sum(data: Expr, **how: Any) -> Expr:
    return relay.log(relay.sum(data, **how))


REDUCTIONS: Final[dict[str, Any]] = {
    "Sum": relay.sum,
    "Mean": relay.mean,
    "Max": relay.max,
    "Min": relay.min,
    "Prod": relay.prod,
    "L1": _norm1,
    "L2": _norm2,
    "SumSquare": _sum_square,
    "LogSum": _log_sum,
    "LogSumExp": relay.logsumexp,
}
_LEGACY: Final = {
    "SUM": "Sum",
    "AVG": "Mean",
    "PROD": "Prod",
    "LOGSUM": "LogSum",
    "SUMSQUARE": "SumSquare",
    "L1": "L1",
    "L2": "L2",
    "MAX": "Max",
    "MIN": "Min",
}
_AXES: Final = {"CHW": (3, 2, 1), "HW": (2, 1), "C": (3,), "H": (2,), "W": (1,)}
"""Axes of reductions, counted from the end."""


def _reduced(node: LayerNode, params: Message, data: Expr, *, function: Any) -> Expr:
    axes = [axis % node.rank(data) for axis in params.axes]
    if params.reduceAll or not axes:
        axes = list(range(node.rank(data)))
    made: Expr = function(data, axis=axes, keepdims=params.keepDims)
    return made


for _name, _function in REDUCTIONS.items():
    LAYERS.register(f"reduce{_name}")(partial(_reduced, function=_function))


@LAYERS.register("reduce")
def reduce(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A reduction over channels, rows or columns of images, which keeps the axes."""
    axes = [node.rank(data) - place for place in _AXES[params.axis]]
    if params.mode == "ARGMAX":
        if len(axes) != 1:
            raise node.fail("the place of the largest element needs one axis")
        return relay.cast(relay.argmax(data, axis=axes, keepdims=True), "float32")
    if params.mode == "LOGSUM" and params.epsilon:
        data = relay.add(data, node.constant(params.epsilon, data))
    made: Expr = REDUCTIONS[_LEGACY[params.mode]](data, axis=axes, keepdims=True)
    return made
