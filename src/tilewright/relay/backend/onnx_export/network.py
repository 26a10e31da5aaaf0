"""Layers of networks: convolutions, products of matrices, pooling, norms, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.relay.backend.onnx_export.builder import GraphWriter, dtype_of, shape_of, writes
from tilewright.relay.backend.onnx_export.layouts import transformed
from tilewright.relay.op.nn.windows import pad_sides, per_axis
from tilewright.support.errors import ModelError
from tilewright.topi.nn.winograd_util import winograd_matrices

_PLAIN = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_KERNELS = {1: "OIW", 2: "OIHW", 3: "OIDHW"}


def _pads(padding: Any, rank: int) -> list[int]:
    before, after = pad_sides(padding, rank)
    return [int(item) for item in (*before, *after)]


def _windows(attrs: Any, rank: int) -> dict[str, Any]:
    return {
        "strides": [int(item) for item in per_axis(attrs.strides, rank, "strides")],
        "dilations": [int(item) for item in per_axis(attrs.dilation, rank, "dilation")],
        "pads": _pads(attrs.padding, rank),
    }


def _typed(graph: GraphWriter, call: Any, made: str) -> str:
    """The element type of the result of a call."""
    given = dtype_of(call.args[0])
    return (
        made if dtype_of(call) == given else graph.node("Cast", [made], to=graph.element_type(dtype_of(call)))
    )


def _back(graph: GraphWriter, call: Any, made: str, rank: int, layout: str) -> str:
    """A result in N, C, space brought to the layout of a call."""
    if layout == _PLAIN[rank]:
        return made
    # The plain shape follows from the shape in the layout of the call.
    _, plain = transformed(_Shapes(graph), "", shape_of(call), layout, _PLAIN[rank])
    return transformed(graph, made, plain, _PLAIN[rank], layout)[0]


class _Shapes(GraphWriter):
    """Follows shapes, and writes nothing."""

    def __init__(self, graph: GraphWriter) -> None:
        self.opset = graph.opset

    def reshape(self, data: str, shape: Sequence[int]) -> str:
        """Nothing."""
        return data

    def transpose(self, data: str, axes: Sequence[int]) -> str:
        """Nothing."""
        return data


@writes("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc")
def write_convolution(graph: GraphWriter, call: Any, data: str, weight: str) -> str:
    """A convolution in any layout."""
    attrs = call.attrs
    rank = len([letter for letter in attrs.data_layout if letter in "DHW"])
    plain, given = transformed(graph, data, shape_of(call.args[0]), attrs.data_layout, _PLAIN[rank])
    kernel, shape = transformed(graph, weight, shape_of(call.args[1]), attrs.kernel_layout, _KERNELS[rank])
    groups = int(attrs.groups)
    if groups > 1 and groups == given[1] == shape[0] and shape[1] > 1:
        # Depthwise: O is the channel, I which of its kernels.
        kernel = graph.reshape(kernel, [shape[0] * shape[1], 1, *shape[2:]])
    made = graph.node("Conv", [plain, kernel], group=groups, **_windows(attrs, rank))
    return _typed(graph, call, _back(graph, call, made, rank, attrs.out_layout or attrs.data_layout))


@writes("nn.contrib_conv2d_winograd_without_weight_transform")
def write_winograd(graph: GraphWriter, call: Any, data: str, weight: str) -> str:
    """A Winograd convolution as the plain one: its weight ``G g G^T`` determines ``g``."""
    attrs = call.attrs
    plain, _ = transformed(graph, data, shape_of(call.args[0]), attrs.data_layout, _PLAIN[2])
    shape = shape_of(call.args[1])
    if len(shape) == 5:
        # (n, n, O/o, I, o): packed in blocks of outputs.
        weight = graph.transpose(weight, [0, 1, 2, 4, 3])
        shape = (*shape[:2], shape[2] * shape[4], shape[3])
    tile, _, outputs, inputs = shape
    size = int(per_axis(attrs.kernel_size, 2, "kernel_size")[0])
    inverse = np.linalg.pinv(winograd_matrices(tile - size + 1, size)[2])
    rows = graph.reshape(weight, [tile * tile, outputs * inputs])
    both = graph.constant(np.kron(inverse, inverse), dtype_of(call.args[1]))
    taps = graph.reshape(graph.node("MatMul", [both, rows]), [size, size, outputs, inputs])
    made = graph.node("Conv", [plain, graph.transpose(taps, [2, 3, 0, 1])], **_windows(attrs, 2))
    return _typed(graph, call, _back(graph, call, made, 2, attrs.out_layout or attrs.data_layout))


@writes("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def write_transposed(graph: GraphWriter, call: Any, data: str, weight: str) -> str:
    """A transposed convolution in any layout."""
    attrs = call.attrs
    rank = len([letter for letter in attrs.data_layout if letter in "DHW"])
    home = {1: "OIW", 2: "IOHW", 3: "OIDHW"}[rank]
    plain, _ = transformed(graph, data, shape_of(call.args[0]), attrs.data_layout, _PLAIN[rank])
    kernel, _ = transformed(graph, weight, shape_of(call.args[1]), attrs.kernel_layout, home)
    more = [int(item) for item in per_axis(attrs.output_padding, rank, "output_padding")]
    made = graph.node(
        "ConvTranspose",
        [plain, kernel],
        group=int(attrs.groups),
        output_padding=more,
        **_windows(attrs, rank),
    )
    return _typed(graph, call, _back(graph, call, made, rank, attrs.out_layout or attrs.data_layout))


# Matrices


@writes("nn.dense", "nn.matmul", "nn.batch_matmul")
def write_product(graph: GraphWriter, call: Any, a: str, b: str) -> str:
    """The product of matrices, either transposed first."""
    dense = call.op.name == "nn.dense"
    transpose_a = not dense and bool(call.attrs.transpose_a)
    transpose_b = dense or bool(call.attrs.transpose_b)
    rank = len(shape_of(call.args[0]))
    if rank == 2 and dtype_of(call.args[0]).startswith("float"):
        made = graph.node("Gemm", [a, b], transA=int(transpose_a), transB=int(transpose_b))
        return _typed(graph, call, made)

    def transposed(name: str, place: int, wanted: bool) -> str:
        axes = list(range(len(shape_of(call.args[place]))))
        return graph.transpose(name, [*axes[:-2], axes[-1], axes[-2]]) if wanted else name

    return _typed(
        graph, call, graph.node("MatMul", [transposed(a, 0, transpose_a), transposed(b, 1, transpose_b)])
    )


@writes("nn.contrib_attention")
def write_attention(graph: GraphWriter, call: Any, *operands: str) -> str:
    """Attention the plain way: two products with a softmax between them."""
    attrs = call.attrs
    shapes = [shape_of(argument) for argument in call.args]

    def heads(place: int, order: str) -> str:
        layout, first = attrs.layouts[place], attrs.first_heads[place]
        transposed = graph.transpose(operands[place], [layout.index(letter) for letter in order])
        shared = attrs.shared if place else 1
        count = attrs.heads // shared
        if shapes[place][layout.index("H")] != count:
            limits = [graph.integers([value]) for value in (first, first + count, 1)]
            transposed = graph.node("Slice", [transposed, *limits])
        if shared == 1:
            return transposed
        batch, *rest = (shapes[place][layout.index(letter)] for letter in order if letter != "H")
        apart = graph.reshape(transposed, [batch, count, 1, *rest])
        several = graph.node("Expand", [apart, graph.integers([batch, count, shared, *rest])])
        return graph.reshape(several, [batch, attrs.heads, *rest])

    scale = graph.constant(attrs.scale, dtype_of(call))
    scores = graph.node("Mul", [graph.node("MatMul", [heads(0, "NHTC"), heads(1, "NHCT")]), scale])
    if attrs.diagonal is not None:
        tokens = [shape[layout.index("T")] for shape, layout in zip(shapes[:2], attrs.layouts, strict=False)]
        hidden = np.where(np.tri(tokens[0], tokens[1], attrs.diagonal, dtype=bool), 0.0, -np.inf)
        scores = graph.node("Add", [scores, graph.constant(hidden, dtype_of(call))])
    if len(operands) > 3:
        scores = graph.node("Add", [scores, graph.transpose(operands[3], [0, 1, 3, 2])])
    made = graph.node("MatMul", [graph.node("Softmax", [scores], axis=-1), heads(2, "NHTC")])
    return graph.transpose(made, ["NHTC".index(letter) for letter in attrs.out_layout])


@writes("nn.contrib_dense_pack")
def write_dense_pack(graph: GraphWriter, call: Any, data: str, weight: str) -> str:
    """A dense layer with its weight in blocks of units."""
    blocks, features, block = shape_of(call.args[1])
    plain = graph.reshape(graph.transpose(weight, [0, 2, 1]), [blocks * block, features])
    return _typed(graph, call, graph.node("Gemm", [data, plain], transA=0, transB=1))


@writes("nn.bias_add")
def write_bias_add(graph: GraphWriter, call: Any, data: str, bias: str) -> str:
    """A vector added along an axis."""
    rank = len(call.checked_type.shape)
    axis = int(call.attrs.axis) % rank
    made = graph.node("Add", [data, graph.reshape(bias, [-1, *[1] * (rank - axis - 1)])])
    if axis == 1:
        graph.biases[made] = data, bias
    return made


# Pooling


@writes(*(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)))
def write_pool(graph: GraphWriter, call: Any, data: str) -> str:
    """Pooling over windows, in any layout."""
    attrs, rank = call.attrs, int(call.op.name[-2])
    average = "avg" in call.op.name
    plain, _ = transformed(graph, data, shape_of(call.args[0]), attrs.layout, _PLAIN[rank])
    windows = _windows(attrs, rank)
    if average:
        if any(step != 1 for step in windows["dilations"]) and graph.opset < 19:
            raise ModelError("average pooling with a dilation needs opset 19")
        if graph.opset < 19:
            windows.pop("dilations")
    made = graph.node(
        "AveragePool" if average else "MaxPool",
        [plain],
        kernel_shape=[int(item) for item in per_axis(attrs.pool_size, rank, "pool_size")],
        ceil_mode=int(bool(attrs.ceil_mode)),
        count_include_pad=int(bool(attrs.count_include_pad)) if average else None,
        **windows,
    )
    return _back(graph, call, made, rank, attrs.out_layout or attrs.layout)


@writes(
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    *(f"nn.adaptive_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
)
def write_adaptive_pool(graph: GraphWriter, call: Any, data: str) -> str:
    """Pooling to a size: over everything, or over windows of one size where the sizes allow."""
    attrs, rank = call.attrs, int(call.op.name[-2])
    average = "avg" in call.op.name
    plain, shape = transformed(graph, data, shape_of(call.args[0]), attrs.layout, _PLAIN[rank])
    size = getattr(attrs, "output_size", 1)
    wanted = shape[2:] if size in (None, ()) else [int(item) for item in per_axis(size, rank, "output_size")]
    if all(item == 1 for item in wanted):
        made = graph.node("GlobalAveragePool" if average else "GlobalMaxPool", [plain])
    elif any(extent % item for extent, item in zip(shape[2:], wanted, strict=True)):
        raise ModelError(f"pooling of {shape[2:]} to {wanted} has windows of different sizes")
    else:
        steps = [extent // item for extent, item in zip(shape[2:], wanted, strict=True)]
        operator = "AveragePool" if average else "MaxPool"
        made = graph.node(operator, [plain], kernel_shape=steps, strides=steps)
    return _back(graph, call, made, rank, attrs.out_layout or attrs.layout)


# Norms and softmax


@writes("nn.softmax", "nn.log_softmax", "nn.fast_softmax")
def write_softmax(graph: GraphWriter, call: Any, data: str) -> str:
    """Over one axis; before opset 13 that has to be the last."""
    operator = "LogSoftmax" if "log" in call.op.name else "Softmax"
    rank = len(call.checked_type.shape)
    axis = int(call.attrs.axis) % rank
    if graph.opset >= 13 or axis == rank - 1:
        return graph.node(operator, [data], axis=axis)
    order = [place for place in range(rank) if place != axis] + [axis]
    made = graph.node(operator, [graph.transpose(data, order)], axis=rank - 1)
    return graph.transpose(made, [int(place) for place in np.argsort(order)])


def _along(graph: GraphWriter, vector: str, rank: int, axis: int) -> str:
    return graph.reshape(vector, [-1, *[1] * (rank - axis - 1)])


def _affine(graph: GraphWriter, call: Any, made: str, gamma: str, beta: str) -> str:
    attrs, rank = call.attrs, len(call.checked_type.shape)
    axis = int(attrs.axis) % rank
    if attrs.scale:
        made = graph.node("Mul", [made, _along(graph, gamma, rank, axis)])
    return graph.node("Add", [made, _along(graph, beta, rank, axis)]) if attrs.center else made


def _normalized(graph: GraphWriter, call: Any, data: str, axes: Sequence[int]) -> str:
    """Mean 0 and variance 1 over axes."""
    centred = graph.node("Sub", [data, graph.reduce("ReduceMean", data, axes, True)])
    square = graph.reduce("ReduceMean", graph.node("Mul", [centred, centred]), axes, True)
    epsilon = graph.constant(float(call.attrs.epsilon), dtype_of(call.args[0]))
    return graph.node("Div", [centred, graph.node("Sqrt", [graph.node("Add", [square, epsilon])])])


@writes("nn.batch_norm")
def write_batch_norm(
    graph: GraphWriter, call: Any, data: str, gamma: str, beta: str, mean: str, variance: str
) -> list[str]:
    """With known means and variances, which are also results."""
    attrs, kind = call.attrs, call.args[0].checked_type
    rank, channels = len(kind.shape), shape_of(call.args[3])[0]
    axis = int(attrs.axis) % rank
    scale = gamma if attrs.scale else graph.constant(np.ones(channels), str(kind.dtype))
    shift = beta if attrs.center else graph.constant(np.zeros(channels), str(kind.dtype))
    order = [0, axis, *(place for place in range(1, rank) if place != axis)] if axis else list(range(rank))
    if axis == 0:
        order = [1, 0, *range(2, rank)]
    made = graph.node(
        "BatchNormalization",
        [graph.transpose(data, order), scale, shift, mean, variance],
        epsilon=float(attrs.epsilon),
    )
    return [graph.transpose(made, [int(place) for place in np.argsort(order)]), mean, variance]


@writes("nn.layer_norm")
def write_layer_norm(graph: GraphWriter, call: Any, data: str, gamma: str, beta: str) -> str:
    """Along one axis."""
    rank = len(call.checked_type.shape)
    axis = int(call.attrs.axis) % rank
    if graph.opset >= 17 and axis == rank - 1 and call.attrs.scale:
        inputs = [data, gamma, beta] if call.attrs.center else [data, gamma]
        return graph.node("LayerNormalization", inputs, axis=-1, epsilon=float(call.attrs.epsilon))
    return _affine(graph, call, _normalized(graph, call, data, [axis]), gamma, beta)


@writes("nn.instance_norm")
def write_instance_norm(graph: GraphWriter, call: Any, data: str, gamma: str, beta: str) -> str:
    """Each channel of each item."""
    rank = len(call.checked_type.shape)
    axes = [axis for axis in range(1, rank) if axis != int(call.attrs.axis) % rank]
    return _affine(graph, call, _normalized(graph, call, data, axes), gamma, beta)


@writes("nn.group_norm")
def write_group_norm(graph: GraphWriter, call: Any, data: str, gamma: str, beta: str) -> str:
    """Each group of channels of each item."""
    shape = list(shape_of(call))
    axis, groups = int(call.attrs.axis) % len(shape), int(call.attrs.num_groups)
    split = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    axes = [place for place in range(1, len(split)) if place != axis]
    made = _normalized(graph, call, graph.reshape(data, split), axes)
    return _affine(graph, call, graph.reshape(made, shape), gamma, beta)


@writes("nn.l2_normalize")
def write_l2_normalize(graph: GraphWriter, call: Any, data: str) -> str:
    """Divided by the length along axes."""
    rank = len(call.checked_type.shape)
    axes = sorted(int(axis) % rank for axis in call.attrs.axis or range(rank))
    square = graph.reduce("ReduceSum", graph.node("Mul", [data, data]), axes, True)
    least = graph.constant(float(call.attrs.eps), dtype_of(call))
    return graph.node("Div", [data, graph.node("Sqrt", [graph.node("Max", [square, least])])])


@writes("nn.lrn")
def write_lrn(graph: GraphWriter, call: Any, data: str) -> str:
    """Local response normalisation across channels."""
    attrs = call.attrs
    if int(attrs.axis) % len(call.checked_type.shape) != 1:
        raise ModelError("lrn can only be exported along axis 1")
    return graph.node(
        "LRN",
        [data],
        size=int(attrs.size),
        alpha=float(attrs.alpha),
        beta=float(attrs.beta),
        bias=float(attrs.bias),
    )


@writes("nn.dropout")
def write_dropout(graph: GraphWriter, call: Any, data: str) -> list[str]:
    """Dropout does nothing at inference."""
    return [graph.node("Identity", [data])] * 2


# Padding and resizing


@writes("nn.pad")
def write_pad(graph: GraphWriter, call: Any, data: str, value: str) -> str:
    """With a value, the edge or a mirror image around."""
    widths = [tuple(int(side) for side in pair) for pair in call.attrs.pad_width]
    pads = graph.integers([pair[0] for pair in widths] + [pair[1] for pair in widths])
    mode = str(call.attrs.pad_mode)
    if mode != "constant":
        return graph.node("Pad", [data, pads], mode=mode)
    if dtype_of(call.args[1]) != dtype_of(call):
        value = graph.node("Cast", [value], to=graph.element_type(dtype_of(call)))
    return graph.node("Pad", [data, pads, value], mode="constant")


@writes("image.resize1d", "image.resize2d", "image.resize3d")
def write_resize(graph: GraphWriter, call: Any, data: str) -> str:
    """Resized to a given size."""
    attrs, rank = call.attrs, int(call.op.name[-2])
    if attrs.coordinate_transformation_mode not in (
        "half_pixel",
        "align_corners",
        "asymmetric",
        "pytorch_half_pixel",
    ):
        raise ModelError(f"resizing with {attrs.coordinate_transformation_mode} cannot be written")
    plain, shape = transformed(graph, data, shape_of(call.args[0]), attrs.layout, _PLAIN[rank])
    size = [*shape[:2], *(int(item) for item in per_axis(attrs.size, rank, "size"))]
    rounding = {"": "round_prefer_ceil", "round": "round_prefer_ceil"}.get(
        attrs.rounding_method, attrs.rounding_method
    )
    if attrs.rounding_method == "" and attrs.coordinate_transformation_mode != "align_corners":
        rounding = "floor"
    made = graph.node(
        "Resize",
        [
            plain,
            "" if graph.opset >= 13 else graph.constant(np.zeros(0, "float32")),
            "" if graph.opset >= 13 else graph.constant(np.zeros(0, "float32")),
            graph.integers(size),
        ],
        mode={"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}[attrs.method],
        coordinate_transformation_mode=attrs.coordinate_transformation_mode,
        nearest_mode=rounding,
        cubic_coeff_a=float(attrs.cubic_alpha),
        exclude_outside=int(attrs.cubic_exclude),
    )
    return _back(graph, call, made, rank, attrs.layout)


@writes("nn.upsampling")
def write_upsampling(graph: GraphWriter, call: Any, data: str) -> str:
    """Larger by factors."""
    attrs = call.attrs
    plain, shape = transformed(graph, data, shape_of(call.args[0]), attrs.layout, "NCHW")
    size = [*shape[:2], round(shape[2] * float(attrs.scale_h)), round(shape[3] * float(attrs.scale_w))]
    nearest = attrs.method in ("nearest_neighbor", "nearest")
    none = "" if graph.opset >= 13 else graph.constant(np.zeros(0, "float32"))
    mode = "asymmetric" if nearest else "align_corners" if attrs.align_corners else "half_pixel"
    made = graph.node(
        "Resize",
        [plain, none, none, graph.integers(size)],
        mode="nearest" if nearest else "cubic" if "cubic" in attrs.method else "linear",
        coordinate_transformation_mode=mode,
        nearest_mode="floor",
        cubic_coeff_a=-0.5,
    )
    return _back(graph, call, made, 2, attrs.layout)


@writes("nn.depth_to_space", "nn.space_to_depth")
def write_depth(graph: GraphWriter, call: Any, data: str) -> str:
    """Channels to space, and back."""
    attrs = call.attrs
    plain, _ = transformed(graph, data, shape_of(call.args[0]), attrs.layout, "NCHW")
    if call.op.name == "nn.depth_to_space":
        made = graph.node("DepthToSpace", [plain], blocksize=int(attrs.block_size), mode=str(attrs.mode))
    else:
        made = graph.node("SpaceToDepth", [plain], blocksize=int(attrs.block_size))
    return _back(graph, call, made, 2, attrs.layout)
