"""Recipes of the operators of neural networks."""

from __future__ import annotations

from typing import Any

from tests.relay.random_program.evaluation import Value
from tests.relay.random_program.generator import FLOATS, Generator, recipe

from tilewright.relay.op import image, nn

MOST_OF_THE_TIME = ("float32", "float32", "float32", "float64")
SPACES = {1: "W", 2: "HW", 3: "DHW"}


def _ordered(
    g: Generator, extents: dict[str, int], layout: str, low: float, high: float, dtype: str
) -> Value:
    """A tensor whose axes have these extents, in the order of a layout."""
    return g.tensor((dtype,), shape=tuple(extents[axis] for axis in layout), low=low, high=high)


def _window(g: Generator, count: int) -> dict[str, Any]:
    """Strides, padding and dilation."""
    padding = g.shape(count, 0, 2)
    if g.chance(0.3):
        padding = (*padding, *g.shape(count, 0, 2))
    return {
        "strides": g.shape(count, 1, 2),
        "padding": padding,
        "dilation": g.shape(count, 1, 2) if g.chance(0.3) else (1,) * count,
    }


def _convolution(name: str, count: int, layouts: list[tuple[str, str]]) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        space = SPACES[count]
        data_layout, kernel_layout = g.choice(layouts)
        groups = g.choice([1, 1, 2, 4])
        inner, outer = g.integer(1, 4), g.integer(1, 4)
        if g.chance(0.2):
            # One filter for each channel, or a few.
            groups, inner, outer = g.choice([3, 4, 8]), 1, g.integer(1, 2)
        kernel = g.shape(count, 1, 3)
        window = _window(g, count)
        extents = dict(zip(space, [g.integer(5, 8 if count < 3 else 6) for _ in space], strict=True))
        dtype = g.choice(MOST_OF_THE_TIME)
        data = _ordered(g, {"N": g.integer(1, 2), "C": groups * inner, **extents}, data_layout, -2, 2, dtype)
        weights = {"O": groups * outer, "I": inner, **dict(zip(space, kernel, strict=True))}
        weight = _ordered(g, weights, kernel_layout, -1, 1, dtype)
        return getattr(nn, name.removeprefix("nn."))(
            data.expr,
            weight.expr,
            groups=groups,
            channels=groups * outer,
            kernel_size=kernel,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            **window,
        )


_convolution("nn.conv1d", 1, [("NCW", "OIW"), ("NWC", "WIO")])
_convolution("nn.conv2d", 2, [("NCHW", "OIHW"), ("NCHW", "OIHW"), ("NHWC", "HWIO")])
_convolution("nn.conv3d", 3, [("NCDHW", "OIDHW"), ("NDHWC", "DHWIO")])


def _transposed(name: str, count: int) -> None:
    @recipe(name)
    def make(g: Generator) -> Any:
        inner, outer = g.integer(1, 4), g.integer(1, 4)
        kernel, strides = g.shape(count, 1, 3), g.shape(count, 1, 2)
        dtype = g.choice(MOST_OF_THE_TIME)
        data = g.tensor((dtype,), shape=(g.integer(1, 2), inner, *g.shape(count, 3, 5)), low=-2, high=2)
        weight = g.tensor((dtype,), shape=(inner, outer, *kernel), low=-1, high=1)
        return getattr(nn, name.removeprefix("nn."))(
            data.expr,
            weight.expr,
            channels=outer,
            kernel_size=kernel,
            strides=strides,
            padding=tuple(g.integer(0, min(size - 1, 1)) for size in kernel),
            output_padding=tuple(g.integer(0, stride - 1) for stride in strides),
        )


for _count in (1, 2, 3):
    _transposed(f"nn.conv{_count}d_transpose", _count)


@recipe("nn.dense")
def dense(g: Generator) -> Any:
    """With the number of units, or without."""
    data = g.tensor(MOST_OF_THE_TIME, rank=(2, 3), low=-3, high=3)
    units = g.integer(1, 6)
    weight = g.tensor((data.dtype,), shape=(units, data.shape[-1]), low=-1, high=1)
    return nn.dense(data.expr, weight.expr, units if g.chance(0.5) else None)


@recipe("nn.matmul")
def matmul(g: Generator) -> Any:
    """Either operand transposed."""
    m, k, n = g.shape(3, 1, 7)
    first, second = g.chance(0.5), g.chance(0.5)
    a = g.tensor(("float32",), shape=(k, m) if first else (m, k), low=-3, high=3)
    b = g.tensor(("float32",), shape=(n, k) if second else (k, n), low=-1, high=1)
    return nn.matmul(a.expr, b.expr, transpose_a=first, transpose_b=second)


@recipe("nn.batch_matmul")
def batch_matmul(g: Generator) -> Any:
    """The batch of one operand repeated now and then."""
    batch, m, k, n = g.shape(4)
    first, second = g.chance(0.3), g.chance(0.7)
    a = g.tensor(("float32",), shape=(batch, k, m) if first else (batch, m, k), low=-3, high=3)
    count = 1 if g.chance(0.2) else batch
    b = g.tensor(("float32",), shape=(count, n, k) if second else (count, k, n), low=-1, high=1)
    return nn.batch_matmul(a.expr, b.expr, transpose_a=first, transpose_b=second)


def _pool(count: int) -> None:
    @recipe(f"nn.max_pool{count}d", f"nn.avg_pool{count}d")
    def make(g: Generator) -> Any:
        data = g.tensor(("float32",), shape=(*g.shape(2, 1, 3), *g.shape(count, 4, 7)))
        window = g.shape(count, 1, 3)
        shared: dict[str, Any] = {
            "pool_size": window,
            "strides": g.shape(count, 1, 2),
            # A window lies in padding alone nowhere.
            "padding": tuple(g.integer(0, size // 2) for size in window),
            "ceil_mode": g.chance(0.2),
        }
        if g.chance(0.5):
            return getattr(nn, f"max_pool{count}d")(data.expr, **shared)
        return getattr(nn, f"avg_pool{count}d")(data.expr, count_include_pad=g.chance(0.5), **shared)


def _adaptive(count: int) -> None:
    names = [f"nn.adaptive_{kind}_pool{count}d" for kind in ("max", "avg")]

    @recipe(*names)
    def make(g: Generator) -> Any:
        data = g.tensor(("float32",), rank=count + 2)
        size = tuple(g.integer(1, extent) for extent in data.shape[2:])
        return getattr(nn, g.choice(names).removeprefix("nn."))(data.expr, size)


for _count in (1, 2, 3):
    _pool(_count)
    _adaptive(_count)


@recipe("nn.global_max_pool2d", "nn.global_avg_pool2d")
def global_pool(g: Generator) -> Any:
    """One number a channel."""
    data = g.tensor(FLOATS, rank=4)
    return g.choice([nn.global_max_pool2d, nn.global_avg_pool2d])(data.expr)


@recipe("nn.softmax", "nn.log_softmax", "nn.fast_softmax")
def softmax(g: Generator) -> Any:
    """Along any axis."""
    data = g.tensor(("float32", "float64"), rank=(1, 2, 3, 4), low=-8, high=8)
    options = [nn.softmax, nn.log_softmax]
    if data.dtype == "float32":
        options.append(nn.fast_softmax)
    return g.choice(options)(data.expr, axis=g.integer(-data.rank, data.rank - 1))


def _vector(g: Generator, data: Value, length: int, low: float = -1, high: float = 1) -> Any:
    return g.fresh((length,), data.dtype, low, high).expr


@recipe("nn.batch_norm")
def batch_norm(g: Generator) -> Any:
    """With the statistics given; the normalised tensor alone, or all three results."""
    data = g.tensor(("float32", "float64"), rank=(2, 3, 4))
    axis = g.integer(0, data.rank - 1)
    count = data.shape[axis]
    made = nn.batch_norm(
        data.expr,
        _vector(g, data, count),
        _vector(g, data, count),
        _vector(g, data, count),
        _vector(g, data, count, 0.5, 2),
        axis=axis,
        center=g.chance(0.8),
        scale=g.chance(0.8),
    )
    return made[0] if g.chance(0.8) else made


@recipe("nn.layer_norm", "nn.instance_norm", "nn.group_norm")
def normalised(g: Generator) -> Any:
    """By the statistics of the tensor itself; epsilon is large enough that few elements do not matter much."""
    data = g.tensor(("float32", "float64"), rank=(3, 4))
    kind = g.choice(["layer", "instance", "group"])
    shared: dict[str, Any] = {"epsilon": 0.1, "center": g.chance(0.8), "scale": g.chance(0.8)}
    if kind == "layer":
        axis = g.integer(-data.rank, data.rank - 1)
        scale, shift = (_vector(g, data, data.shape[axis]) for _ in range(2))
        return nn.layer_norm(data.expr, scale, shift, axis=axis, **shared)
    scale, shift = (_vector(g, data, data.shape[1]) for _ in range(2))
    if kind == "instance":
        return nn.instance_norm(data.expr, scale, shift, axis=1, **shared)
    groups = g.choice([number for number in range(1, data.shape[1] + 1) if data.shape[1] % number == 0])
    return nn.group_norm(data.expr, scale, shift, groups, axis=1, **shared)


@recipe("nn.l2_normalize", "nn.lrn")
def scaled(g: Generator) -> Any:
    """By the squares along an axis."""
    data = g.tensor(("float32",), rank=4)
    if g.chance(0.5):
        return nn.l2_normalize(data.expr, 0.1, [g.integer(0, 3)])
    return nn.lrn(data.expr, size=g.choice([1, 3]), axis=1, alpha=0.1)


@recipe("nn.upsampling", "nn.upsampling3d")
def upsampling(g: Generator) -> Any:
    """By whole factors."""
    if g.chance(0.3):
        data = g.tensor(("float32",), rank=5)
        depth, height, width = (float(factor) for factor in g.shape(3, 1, 2))
        return nn.upsampling3d(data.expr, depth, height, width)
    data = g.tensor(("float32",), rank=4)
    method = g.choice(["nearest_neighbor", "bilinear"])
    return nn.upsampling(data.expr, g.integer(1, 3), g.integer(1, 3), method=method)


@recipe("image.resize1d", "image.resize2d", "image.resize3d")
def resize(g: Generator) -> Any:
    """Linearly, to any size."""
    count = g.integer(1, 3)
    data = g.tensor(("float32",), rank=count + 2)
    size = g.shape(count, 1, 6)
    mode = g.choice(["half_pixel", "align_corners", "asymmetric"])
    function = getattr(image, f"resize{count}d")
    return function(
        data.expr, size[0] if count == 1 else size, method="linear", coordinate_transformation_mode=mode
    )


@recipe("nn.cross_entropy", "nn.cross_entropy_with_logits")
def cross_entropy(g: Generator) -> Any:
    """Of positive numbers."""
    data = g.tensor(("float32",), rank=2, low=0.1, high=1)
    targets = g.tensor(("float32",), shape=data.shape, low=0, high=1)
    return g.choice([nn.cross_entropy, nn.cross_entropy_with_logits])(data.expr, targets.expr)


@recipe("nn.nll_loss")
def nll_loss(g: Generator) -> Any:
    """With a weight for each class."""
    data = g.tensor(("float32",), rank=(2, 3))
    targets = g.fresh((data.shape[0], *data.shape[2:]), "int32", 0, data.shape[1] - 1)
    weights = g.fresh((data.shape[1],), "float32", 0.5, 1)
    reduction = g.choice(["mean", "sum", "none"])
    return nn.nll_loss(data.expr, targets.expr, weights.expr, reduction)
