"""MXNet's operators against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.mxnet.models import Array, Symbol, run, single

from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


X = floats(2, 3, 4)
Y = floats(2, 3, 4)
IMAGE = floats(2, 4, 5, 6)


def close(made: Array, expected: Any) -> None:
    """The same shape and almost the same numbers."""
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def softmax(data: Array, axis: int = -1) -> Array:
    """Probabilities."""
    grown = np.exp(data - data.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


def convolved(data: Array, weight: Array, stride: int, pad: int, dilate: int = 1, groups: int = 1) -> Array:
    """A convolution of images, tap by tap."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    outputs, inputs, rows, columns = weight.shape
    height = (padded.shape[2] - dilate * (rows - 1) - 1) // stride + 1
    width = (padded.shape[3] - dilate * (columns - 1) - 1) // stride + 1
    made = np.zeros((len(data), outputs, height, width), "float32")
    for output in range(outputs):
        first = output // (outputs // groups) * inputs
        for row in range(rows):
            for column in range(columns):
                top, left = row * dilate, column * dilate
                seen = padded[:, first : first + inputs, top : top + stride * height : stride]
                seen = seen[..., left : left + stride * width : stride]
                made[:, output] += np.einsum(
                    "bchw,c->bhw", seen[:, :, :height, :width], weight[output, :, row, column]
                )
    return made


# Layers


@pytest.mark.parametrize(("stride", "pad", "dilate", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 4)])
def test_a_convolution(stride: int, pad: int, dilate: int, groups: int) -> None:
    """With steps, a border, distances and groups."""
    weight, bias = floats(8, 4 // groups, 3, 3), floats(8)
    expected = convolved(IMAGE, weight, stride, pad, dilate, groups) + bias[:, None, None]
    attributes = {
        "kernel": "(3, 3)", "stride": f"({stride}L, {stride}L)", "pad": (pad, pad), "dilate": (dilate, dilate),
        "num_filter": 8, "num_group": groups,
    }  # fmt: skip
    close(single("Convolution", {"x": IMAGE, "w": weight, "b": bias}, **attributes)[0], expected)


def test_a_convolution_with_channels_last() -> None:
    """The kernel is outputs, rows, columns, inputs."""
    weight = floats(3, 3, 3, 4)
    made = single(
        "Convolution",
        {"x": np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)), "w": weight},
        kernel=(3, 3),
        num_filter=3,
        no_bias=True,
        layout="NHWC",
    )
    close(made[0], convolved(IMAGE, weight.transpose(0, 3, 1, 2), 1, 0).transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    "attributes",
    [{"stride": (2, 2), "pad": (1, 1), "adj": (1, 1)}, {"stride": (2, 2), "target_shape": (10, 12)}],
)
def test_a_transposed_convolution(attributes: dict[str, Any]) -> None:
    """Each pixel spreads over a window. Without ``adj`` a target shape decides what is cut off."""
    weight = floats(4, 3, 3, 3)
    full = np.zeros((2, 3, 12, 14), "float32")
    for row in range(5):
        for column in range(6):
            spread = np.einsum("bc,cohw->bohw", IMAGE[:, :, row, column], weight)
            full[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += spread
    made = single("Deconvolution", {"x": IMAGE, "w": weight}, kernel=(3, 3), num_filter=3, **attributes)
    close(made[0], full[:, :, 1:11, 1:13])


def test_fully_connected() -> None:
    """All axes but the first are one, unless flatten is off."""
    weight, bias = floats(5, 12), floats(5)
    given = {"x": X, "w": weight, "b": bias}
    close(single("FullyConnected", given, num_hidden=5)[0], X.reshape(2, 12) @ weight.T + bias)
    weight = floats(5, 4)
    made = single("FullyConnected", {"x": X, "w": weight}, num_hidden=5, no_bias=True, flatten=False)
    close(made[0], X @ weight.T)


@pytest.mark.parametrize("fixed", [True, False])
def test_batch_norm(fixed: bool) -> None:
    """The scale counts only where fix_gamma is off; epsilon is MXNet's."""
    gamma, beta, mean, variance = floats(4), floats(4), floats(4), np.abs(floats(4))
    made = single("BatchNorm", {"x": IMAGE, "g": gamma, "b": beta, "m": mean, "v": variance}, fix_gamma=fixed)
    wide = [one[:, None, None] for one in (gamma, beta, mean, variance)]
    scale = 1 if fixed else wide[0]
    close(made[0], (IMAGE - wide[2]) / np.sqrt(wide[3] + 1e-3) * scale + wide[1])


def test_other_normalisations() -> None:
    """Layer, instance, group and length, and along channels."""
    gamma, beta = floats(4), floats(4)

    def normal(data: Array, axes: Any, epsilon: float) -> Array:
        spread = np.sqrt(data.var(axes, keepdims=True) + epsilon)
        return (data - data.mean(axes, keepdims=True)) / spread  # type: ignore[no-any-return]

    close(single("LayerNorm", {"x": X, "g": gamma, "b": beta})[0], normal(X, -1, 1e-5) * gamma + beta)
    wide = gamma[:, None, None], beta[:, None, None]
    made = single("InstanceNorm", {"x": IMAGE, "g": gamma, "b": beta})
    close(made[0], normal(IMAGE, (2, 3), 1e-3) * wide[0] + wide[1])
    made = single("GroupNorm", {"x": IMAGE, "g": gamma, "b": beta}, num_groups=2)
    grouped = normal(IMAGE.reshape(2, 2, 2, 5, 6), (2, 3, 4), 1e-5).reshape(IMAGE.shape)
    close(made[0], grouped * wide[0] + wide[1])
    for mode, axes in (("instance", (1, 2, 3)), ("channel", 1), ("spatial", (2, 3))):
        length = np.sqrt((IMAGE**2).sum(axes, keepdims=True))
        close(single("L2Normalization", {"x": IMAGE}, mode=mode)[0], IMAGE / length)
    made = single("LRN", {"x": IMAGE}, nsize=3, alpha=0.5, knorm=1)
    squares = np.pad(IMAGE**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    close(made[0], IMAGE / (1 + 0.5 / 3 * total) ** 0.75)


def test_pooling() -> None:
    """The largest and the mean; rounding the size up does not count what is beyond the border."""
    made = single("Pooling", {"x": IMAGE}, kernel=(2, 2), stride=(2, 2), pool_type="max")[0]
    close(made, IMAGE[:, :, :4].reshape(2, 4, 2, 2, 3, 2).max((3, 5)))
    window = {"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"}
    made = single("Pooling", {"x": IMAGE}, pool_type="max", **window)[0]
    assert made.shape == (2, 4, 3, 3)
    close(made[:, :, 2], IMAGE[:, :, 4].reshape(2, 4, 3, 2).max(-1))
    made = single("Pooling", {"x": IMAGE}, pool_type="avg", **window)[0]
    close(made[:, :, 2], IMAGE[:, :, 4].reshape(2, 4, 3, 2).mean(-1))
    for counted in (True, False):
        made = single(
            "Pooling", {"x": IMAGE}, kernel=(3, 3), pad=(1, 1), pool_type="avg", count_include_pad=counted
        )[0]
        close(made[:, :, 0, 0], IMAGE[:, :, :2, :2].sum((2, 3)) / (9 if counted else 4))
    close(
        single("Pooling", {"x": IMAGE}, global_pool=True, pool_type="avg")[0],
        IMAGE.mean((2, 3), keepdims=True),
    )
    made = single("_contrib_AdaptiveAvgPooling2D", {"x": IMAGE}, output_size=(1, 3))[0]
    close(made, IMAGE.reshape(2, 4, 1, 5, 3, 2).mean((3, 5)))


def test_embedding_and_upsampling() -> None:
    """Places outside a table read its last row; pixels are repeated."""
    table = floats(5, 2)
    places = np.array([[0, 4], [7, 2]], "float32")
    close(
        single("Embedding", {"x": places, "w": table}, input_dim=5, output_dim=2)[0], table[[[0, 4], [4, 2]]]
    )
    made = single("UpSampling", {"x": IMAGE}, scale=2, sample_type="nearest", num_args=1)
    close(made[0], IMAGE.repeat(2, 2).repeat(2, 3))


# Activations


def test_activations() -> None:
    """Each by its name."""
    sigmoid = 1 / (1 + np.exp(-X))
    softrelu = np.log1p(np.exp(X))
    for kind, expected in (
        ("relu", np.maximum(X, 0)), ("sigmoid", sigmoid), ("tanh", np.tanh(X)), ("softrelu", softrelu),
        ("softsign", X / (1 + np.abs(X))), ("log_sigmoid", np.log(sigmoid)), ("mish", X * np.tanh(softrelu)),
    ):  # fmt: skip
        close(single("Activation", {"x": X}, act_type=kind)[0], expected)
    below = np.expm1(np.minimum(X, 0))
    erf = np.vectorize(math.erf)
    for kind, expected in (
        ("leaky", np.where(X > 0, X, 0.3 * X)),
        ("elu", np.maximum(X, 0) + 0.3 * below),
        ("selu", 1.0507009873554805 * (np.maximum(X, 0) + 1.6732632423543772 * below)),
        ("gelu", X * 0.5 * (1 + erf(X / np.sqrt(2)))),
    ):
        close(single("LeakyReLU", {"x": X}, act_type=kind, slope=0.3)[0], expected)
    for slopes in (floats(3), floats(1)):
        made = single("LeakyReLU", {"x": X, "s": slopes}, act_type="prelu")
        close(made[0], np.where(X > 0, X, X * slopes[:, None]))
    with pytest.raises(ModelError, match=r"node 'made' \(Activation\): act_type 'swish' is not one of"):
        single("Activation", {"x": X}, act_type="swish")


def test_softmax() -> None:
    """Along an axis, at a temperature, within lengths; losses give probabilities without their labels."""
    close(single("softmax", {"x": X}, axis=1, temperature=2.0)[0], softmax(X / 2, 1))
    close(single("log_softmax", {"x": X})[0], np.log(softmax(X)))
    made = single("softmax", {"x": X[0], "n": np.array([4, 2, 1], "int32")}, use_length=True)[0]
    close(made[0], softmax(X[0, 0]))
    close(made[1], [*softmax(X[0, 1, :2]), 0, 0])
    symbol = Symbol()
    symbol.node("SoftmaxOutput", "softmax", symbol.variable("x"), symbol.variable("softmax_label"))
    close(run(symbol.text(), {"x": X[0]})[0], softmax(X[0]))


# Elementwise


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("broadcast_add", lambda x, y: x + y),
        ("elemwise_sub", lambda x, y: x - y),
        ("_mul", lambda x, y: x * y),
        ("_Div", lambda x, y: x / y),
        ("broadcast_mod", np.mod),
        ("broadcast_maximum", np.maximum),
        ("broadcast_hypot", np.hypot),
        ("broadcast_greater", lambda x, y: (x > y).astype("float32")),
        ("_npi_subtract", lambda x, y: x - y),
    ],
)
def test_two_tensors(operator: str, expected: Any) -> None:
    """Under the names of each generation of MXNet; comparisons give numbers."""
    close(single(operator, {"x": X, "y": Y})[0], expected(X, Y))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("_plus_scalar", X + 2.5),
        ("_rminus_scalar", 2.5 - X),
        ("_rdiv_scalar", 2.5 / X),
        ("_RPowerScalar", 2.5**X),
        ("_lesser_scalar", (X < 2.5).astype("float32")),
        ("_maximum_scalar", np.maximum(X, 2.5)),
    ],
)
def test_a_tensor_and_a_number(operator: str, expected: Any) -> None:
    """In both orders."""
    close(single(operator, {"x": X}, scalar=2.5)[0], expected)


def test_functions_of_one_tensor() -> None:
    """Among them MXNet's two ways of rounding halves."""
    halves = np.array([-1.5, -0.5, 0.5, 1.5, 2.2], "float32")
    close(single("round", {"x": halves})[0], [-2, -1, 1, 2, 2])
    close(single("rint", {"x": halves})[0], [-2, -1, 0, 1, 2])
    for operator, expected in (
        ("square", X**2), ("expm1", np.expm1(X)), ("cbrt", np.cbrt(X)), ("arctan", np.arctan(X)),
        ("reciprocal", 1 / X), ("fix", np.trunc(X)), ("Dropout", X), ("BlockGrad", X),
    ):  # fmt: skip
        close(single(operator, {"x": X})[0], expected)
    close(single("clip", {"x": X}, a_min=-0.5, a_max=0.5)[0], np.clip(X, -0.5, 0.5))
    close(single("add_n", {"x": X, "y": Y, "z": X})[0], X + Y + X)
    close(single("where", {"c": (X > 0).astype("float32"), "x": X, "y": Y})[0], np.where(X > 0, X, Y))
    rows = np.array([0, 1], "float32")
    close(single("where", {"c": rows, "x": X, "y": Y})[0], np.stack([Y[0], X[1]]))
    assert single("Cast", {"x": X}, dtype="int32")[0].dtype == np.int32


# Shapes


@pytest.mark.parametrize(
    ("shape", "reverse", "expected"),
    [
        ("(0, -1)", False, (2, 12)),
        ("(-2,)", False, (2, 3, 4)),
        ("(-3, 0)", False, (6, 4)),
        ("(0, 0, -4, 2, -1)", False, (2, 3, 2, 2)),
        ("(-1, 0)", True, (6, 4)),
    ],
)
def test_reshape_with_codes(shape: str, reverse: bool, expected: tuple[int, ...]) -> None:
    """As MXNet's documentation has them."""
    close(single("Reshape", {"x": X}, shape=shape, reverse=reverse)[0], X.reshape(expected))


def test_shapes() -> None:
    """Axes moved, added, dropped, repeated, joined and padded."""
    close(single("Flatten", {"x": X})[0], X.reshape(2, 12))
    close(single("transpose", {"x": X})[0], X.T)
    close(single("transpose", {"x": X}, axes=(0, 2, 1))[0], X.transpose(0, 2, 1))
    close(single("SwapAxis", {"x": X}, dim1=0, dim2=2)[0], X.swapaxes(0, 2))
    close(single("expand_dims", {"x": X}, axis=1)[0], X[:, None])
    close(single("squeeze", {"x": X[:1]}, axis=0)[0], X[0])
    close(single("broadcast_axis", {"x": X[:1]}, axis=0, size=3)[0], np.repeat(X[:1], 3, 0))
    close(single("tile", {"x": X}, reps=(2, 1, 1))[0], np.tile(X, (2, 1, 1)))
    close(single("repeat", {"x": X}, repeats=2, axis=-1)[0], X.repeat(2, -1))
    close(single("flip", {"x": X}, axis=1)[0], X[:, ::-1])
    close(single("Concat", {"x": X, "y": Y}, dim=2, num_args=2)[0], np.concatenate([X, Y], 2))
    close(single("stack", {"x": X, "y": Y}, axis=1, num_args=2)[0], np.stack([X, Y], 1))
    widths = ((0, 0), (0, 0), (1, 2), (0, 1))
    flat = tuple(one for pair in widths for one in pair)
    made = single("Pad", {"x": IMAGE}, mode="constant", constant_value=3, pad_width=flat)
    close(made[0], np.pad(IMAGE, widths, constant_values=3))
    for mode in ("edge", "reflect"):
        close(single("Pad", {"x": IMAGE}, mode=mode, pad_width=flat)[0], np.pad(IMAGE, widths, mode=mode))


def test_slices() -> None:
    """As Python's, with steps, from the end, backwards, and open."""
    close(single("slice", {"x": X}, begin="(None, 1)", end="(None, 3)")[0], X[:, 1:3])
    close(single("slice", {"x": X}, begin="(None, 2)", end="(None, None)", step="(None, -1)")[0], X[:, ::-1])
    close(single("slice_axis", {"x": X}, axis=-1, begin=-3, end="None")[0], X[..., -3:])
    close(single("slice_like", {"x": X, "y": floats(1, 2, 9)}, axes="(0, 1)")[0], X[:1, :2])
    first, second = single("SliceChannel", {"x": X}, results=2, num_outputs=2, axis=2)
    close(first, X[..., :2])
    close(second, X[..., 2:])
    parts = single("split", {"x": X}, results=3, num_outputs=3, squeeze_axis=1)
    close(parts[2], X[:, 2])


def test_indices() -> None:
    """Cut off, wrapped, picked, one-hot, and masked."""
    places = np.array([0, 5, -1], "float32")
    close(single("take", {"x": X, "i": places}, axis=1)[0], X[:, [0, 2, 0]])
    close(single("take", {"x": X, "i": places}, axis=1, mode="wrap")[0], X[:, [0, 2, 2]])
    close(single("pick", {"x": X[0], "i": np.array([0, 3, 1], "float32")})[0], X[0][[0, 1, 2], [0, 3, 1]])
    close(single("one_hot", {"i": np.array([1, 0], "int32")}, depth=3)[0], np.eye(3)[[1, 0]])
    made = single(
        "SequenceMask", {"x": X, "n": np.array([1, 2, 0], "float32")}, use_sequence_length=True, value=7
    )
    expected = X.copy()
    expected[1, 0] = expected[:, 2] = 7
    close(made[0], expected)
    close(single("gather_nd", {"x": X, "i": np.array([[0, 1], [2, 0]], "float32")})[0], X[[0, 1], [2, 0]])


# Products and reductions


def test_products() -> None:
    """Of matrices, of tensors, of stacks of matrices, and of attention."""
    left, right = floats(4, 3), floats(4, 5)
    close(single("dot", {"x": left, "y": right}, transpose_a=True)[0], left.T @ right)
    close(single("dot", {"x": X, "y": right})[0], X @ right)
    close(single("batch_dot", {"x": X, "y": Y}, transpose_b=True)[0], X @ Y.transpose(0, 2, 1))
    deep = floats(2, 3, 4, 5)
    made = single("linalg_gemm2", {"x": deep, "y": deep}, transpose_a=True, alpha=0.5)
    close(made[0], 0.5 * deep.swapaxes(2, 3) @ deep)
    data = floats(3, 2, 2 * 3 * 4)
    apart = data.reshape(3, 2 * 2, 3, 4).transpose(2, 1, 0, 3)
    scores = apart[0] / 2 @ apart[1].transpose(0, 2, 1)
    close(single("_contrib_interleaved_matmul_selfatt_qk", {"x": data}, heads=2)[0], scores)
    made = single("_contrib_interleaved_matmul_selfatt_valatt", {"x": data, "w": scores}, heads=2)
    close(made[0], (scores @ apart[2]).transpose(1, 0, 2).reshape(3, 2, 8))
    close(single("_contrib_div_sqrt_dim", {"x": X})[0], X / 2)


def test_reductions() -> None:
    """Without axes the result is a vector of one; exclude takes the other axes."""
    close(single("sum", {"x": X})[0], [X.sum()])
    close(single("mean", {"x": X}, axis=1, keepdims=True)[0], X.mean(1, keepdims=True))
    close(single("max", {"x": X}, axis="(0, 2)", exclude=True)[0], X.max(1))
    close(single("norm", {"x": X}, axis=-1)[0], np.sqrt((X**2).sum(-1)))
    made = single("argmax", {"x": X}, axis=1)[0]
    assert made.dtype == np.float32
    close(made, X.argmax(1))
    values, places = single("topk", {"x": X}, results=2, k=2, ret_typ="both")
    order = np.argsort(-X, -1)[..., :2]
    close(values, np.take_along_axis(X, order, -1))
    close(places, order)
    close(single("sort", {"x": X}, is_ascend=False)[0], -np.sort(-X))
    close(single("_arange", {}, start=1, stop=2, step=0.25, repeat=2)[0], np.repeat(np.arange(1, 2, 0.25), 2))


# Detection


def test_boxes() -> None:
    """A box that overlaps a better one of its class is -1, and comes last."""
    boxes = np.array(
        [[0, 0.5, 0, 0, 2, 2], [0, 0.9, 0, 0, 2, 1.9], [1, 0.4, 0, 0, 2, 2], [0, 0.3, 5, 5, 6, 6]], "float32"
    )
    made = single("_contrib_box_nms", {"x": boxes}, id_index=0, overlap_thresh=0.5, valid_thresh=0.1)[0]
    close(made, [*boxes[[1, 2, 3]], [-1] * 6])
    made = single("_contrib_box_nms", {"x": boxes[None]}, id_index=0, force_suppress=True, valid_thresh=0.35)[
        0
    ]
    close(made, [[boxes[1], *[[-1] * 6] * 3]])


def test_anchors_and_detections() -> None:
    """Anchors around the middles of pixels; detections are classes, scores and corners."""
    anchors = single("MultiBoxPrior", {"x": floats(1, 3, 2, 2)}, sizes="(0.5, 0.25)", ratios="(1,)")[0]
    assert anchors.shape == (1, 8, 4)
    close(anchors[0, :2], [[0, 0, 0.5, 0.5], [0.125, 0.125, 0.375, 0.375]])
    classes = np.zeros((1, 2, 8), "float32")
    classes[0, 1, 3], classes[0, 0] = 0.9, 0.1
    made = single(
        "_contrib_MultiBoxDetection", {"c": classes, "m": np.zeros((1, 32), "float32"), "a": anchors}
    )[0]
    close(made[0, 0], [0, 0.9, *anchors[0, 3]])
    assert (made[0, 1:, 0] == -1).all()


def test_regions() -> None:
    """The largest of each part, and the mean of each."""
    region = np.array([[1, 0, 0, 3, 3]], "float32")
    given = {"x": IMAGE, "r": region}
    made = single("ROIPooling", given, pooled_size=(2, 2), spatial_scale=1.0)[0]
    close(made, IMAGE[1:, :, :4, :4].reshape(1, 4, 2, 2, 2, 2).max((3, 5)))
    region = np.array([[0, 0.5, 0.5, 2.5, 2.5]], "float32")
    made = single(
        "_contrib_ROIAlign", {"x": IMAGE, "r": region}, pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=1
    )[0]
    close(made, IMAGE[:1, :, 1:3, 1:3])
