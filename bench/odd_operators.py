"""Thirty single operators that users might write: odd sizes, odd layouts, odd fusions, as tensor expressions.

Each function gives the arguments of a kernel, its result last. Nothing here has a schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, tir

Operator = Callable[[], list[Any]]


def product(m: int, n: int, k: int, dtype: str = "float32", out: str | None = None) -> list[Any]:
    """A matrix product."""
    a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((k, n), dtype, name="b")
    r = te.reduce_axis((0, k), "r")
    wide = out or dtype
    return [
        a,
        b,
        te.compute(
            (m, n), lambda i, j: te.sum(a[i, r].astype(wide) * b[r, j].astype(wide), axis=r), name="c"
        ),
    ]


def product_with_gelu() -> list[Any]:
    """A product with a bias, and GELU by its tanh."""
    a, b, c = product(37, 500, 130)
    bias = te.placeholder((500,), name="bias")
    shifted = te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="shifted")

    def gelu(i: Any, j: Any) -> Any:
        x = shifted[i, j]
        return 0.5 * x * (1.0 + te.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    return [a, b, bias, te.compute(c.shape, gelu, name="gelu")]


def transposed_product(m: int, n: int, k: int) -> list[Any]:
    """Both factors are stored with the reduction where a product would not have it."""
    a, b = te.placeholder((k, m), name="a"), te.placeholder((n, k), name="b")
    r = te.reduce_axis((0, k), "r")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[r, i] * b[j, r], axis=r), name="c")]


def batched_product() -> list[Any]:
    """Many small products, scaled."""
    a, b = te.placeholder((12, 65, 77), name="a"), te.placeholder((12, 77, 50), name="b")
    r = te.reduce_axis((0, 77), "r")
    c = te.compute((12, 65, 50), lambda n, i, j: te.sum(a[n, i, r] * b[n, r, j], axis=r), name="c")
    return [a, b, te.compute(c.shape, lambda n, i, j: c[n, i, j] * 0.125, name="scaled")]


def convolution(
    channels: int,
    size: int,
    filters: int,
    window: tuple[int, int],
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    pad: int = 0,
) -> list[Any]:
    """A convolution over NCHW, with relu."""
    x = te.placeholder((1, channels, size, size), name="x")
    w = te.placeholder((filters, channels // groups, *window), name="w")
    if pad:
        wide = size + 2 * pad
        padded = te.compute(
            (1, channels, wide, wide),
            lambda n, c, i, j: tir.if_then_else(
                tir.all(i >= pad, i < size + pad, j >= pad, j < size + pad), x[n, c, i - pad, j - pad], 0.0
            ),
            name="padded",
        )
    else:
        wide, padded = size, x
    height = (wide - dilation * (window[0] - 1) - 1) // stride + 1
    width = (wide - dilation * (window[1] - 1) - 1) // stride + 1
    rc = te.reduce_axis((0, channels // groups), "rc")
    ri, rj = te.reduce_axis((0, window[0]), "ri"), te.reduce_axis((0, window[1]), "rj")
    each = filters // groups

    def element(n: Any, f: Any, i: Any, j: Any) -> Any:
        channel = rc if groups == 1 else tir.floordiv(f, each) * (channels // groups) + rc
        taken = padded[n, channel, i * stride + ri * dilation, j * stride + rj * dilation]
        return te.sum(taken * w[f, rc, ri, rj], axis=[rc, ri, rj])

    y = te.compute((1, filters, height, width), element, name="conv")
    return [x, w, te.compute(y.shape, lambda *i: te.max(y(*i), 0.0), name="relu")]


def depthwise(channels: int, size: int, window: int) -> list[Any]:
    """One filter a channel."""
    x = te.placeholder((1, channels, size, size), name="x")
    w = te.placeholder((channels, window, window), name="w")
    ri, rj = te.reduce_axis((0, window), "ri"), te.reduce_axis((0, window), "rj")
    out = size - window + 1
    return [
        x,
        w,
        te.compute(
            (1, channels, out, out),
            lambda n, c, i, j: te.sum(x[n, c, i + ri, j + rj] * w[c, ri, rj], axis=[ri, rj]),
            name="y",
        ),
    ]


def convolution_channels_last() -> list[Any]:
    """Over NHWC, with a filter stored as TensorFlow does."""
    x, w = te.placeholder((1, 30, 30, 20), name="x"), te.placeholder((3, 3, 20, 36), name="w")
    ri, rj, rc = te.reduce_axis((0, 3), "ri"), te.reduce_axis((0, 3), "rj"), te.reduce_axis((0, 20), "rc")
    return [
        x,
        w,
        te.compute(
            (1, 28, 28, 36),
            lambda n, i, j, f: te.sum(x[n, i + ri, j + rj, rc] * w[ri, rj, rc, f], axis=[ri, rj, rc]),
            name="y",
        ),
    ]


def convolution_1d() -> list[Any]:
    """Over time."""
    x, w = te.placeholder((1, 80, 500), name="x"), te.placeholder((60, 80, 9), name="w")
    rc, rt = te.reduce_axis((0, 80), "rc"), te.reduce_axis((0, 9), "rt")
    return [
        x,
        w,
        te.compute(
            (1, 60, 492), lambda n, f, t: te.sum(x[n, rc, t + rt] * w[f, rc, rt], axis=[rc, rt]), name="y"
        ),
    ]


def convolution_3d() -> list[Any]:
    """Over a volume."""
    x, w = te.placeholder((1, 8, 18, 18, 18), name="x"), te.placeholder((12, 8, 3, 3, 3), name="w")
    rc, *r = [te.reduce_axis((0, extent), f"r{place}") for place, extent in enumerate((8, 3, 3, 3))]
    return [
        x,
        w,
        te.compute(
            (1, 12, 16, 16, 16),
            lambda n, f, d, i, j: te.sum(
                x[n, rc, d + r[0], i + r[1], j + r[2]] * w[f, rc, r[0], r[1], r[2]], axis=[rc, *r]
            ),
            name="y",
        ),
    ]


def softmax(rows: int, columns: int, along_rows: bool = False) -> list[Any]:
    """Along rows, or down columns."""
    x = te.placeholder((rows, columns), name="x")
    extent, kept = (rows, columns) if along_rows else (columns, rows)

    def at(i: Any, r: Any) -> Any:
        return x[r, i] if along_rows else x[i, r]

    first, second = te.reduce_axis((0, extent), "r1"), te.reduce_axis((0, extent), "r2")
    high = te.compute((kept,), lambda i: te.max(at(i, first), axis=first), name="high")
    total = te.compute((kept,), lambda i: te.sum(te.exp(at(i, second) - high[i]), axis=second), name="total")

    def element(i: Any, j: Any) -> Any:
        where = j if along_rows else i
        return te.exp(x[i, j] - high[where]) / total[where]

    return [x, te.compute((rows, columns), element, name="y")]


def layer_norm(rows: int, columns: int) -> list[Any]:
    """With a scale and a shift."""
    x = te.placeholder((rows, columns), name="x")
    scale, shift = te.placeholder((columns,), name="scale"), te.placeholder((columns,), name="shift")
    first, second = te.reduce_axis((0, columns), "r1"), te.reduce_axis((0, columns), "r2")
    mean = te.compute((rows,), lambda i: te.sum(x[i, first] / columns, axis=first), name="mean")
    spread = te.compute(
        (rows,),
        lambda i: te.sum((x[i, second] - mean[i]) * (x[i, second] - mean[i]) / columns, axis=second),
        name="spread",
    )
    return [
        x,
        scale,
        shift,
        te.compute(
            (rows, columns),
            lambda i, j: (x[i, j] - mean[i]) * te.rsqrt(spread[i] + 1e-5) * scale[j] + shift[j],
            name="y",
        ),
    ]


def middle_sum() -> list[Any]:
    """Over the middle axis of three."""
    x = te.placeholder((30, 301, 70), name="x")
    r = te.reduce_axis((0, 301), "r")
    return [x, te.compute((30, 70), lambda i, j: te.sum(x[i, r, j], axis=r), name="y")]


def whole_sum() -> list[Any]:
    """Of squares, over everything."""
    x = te.placeholder((700, 301), name="x")
    i, j = te.reduce_axis((0, 700), "i"), te.reduce_axis((0, 301), "j")
    return [x, te.compute((1,), lambda _: te.sum(x[i, j] * x[i, j], axis=[i, j]), name="y")]


def row_dots() -> list[Any]:
    """The dot product of each row of one matrix with the same row of another."""
    a, b = te.placeholder((1000, 513), name="a"), te.placeholder((1000, 513), name="b")
    r = te.reduce_axis((0, 513), "r")
    return [a, b, te.compute((1000,), lambda i: te.sum(a[i, r] * b[i, r], axis=r), name="y")]


def distances() -> list[Any]:
    """Squared distances between all pairs of points."""
    a, b = te.placeholder((200, 17), name="a"), te.placeholder((300, 17), name="b")
    r = te.reduce_axis((0, 17), "r")
    return [
        a,
        b,
        te.compute(
            (200, 300), lambda i, j: te.sum((a[i, r] - b[j, r]) * (a[i, r] - b[j, r]), axis=r), name="y"
        ),
    ]


def nearest() -> list[Any]:
    """The least L1 distance of each point to a set of others."""
    a, b = te.placeholder((150, 9), name="a"), te.placeholder((220, 9), name="b")
    r, other = te.reduce_axis((0, 9), "r"), te.reduce_axis((0, 220), "other")
    apart = te.compute((150, 220), lambda i, j: te.sum(te.abs(a[i, r] - b[j, r]), axis=r), name="apart")
    return [a, b, te.compute((150,), lambda i: te.min(apart[i, other], axis=other), name="y")]


def attention_scores() -> list[Any]:
    """Scores of queries and keys with a mask, and their softmax."""
    q, k = te.placeholder((8, 65, 48), name="q"), te.placeholder((8, 65, 48), name="k")
    mask = te.placeholder((65, 65), name="mask")
    r, first, second = (
        te.reduce_axis((0, 48), "r"),
        te.reduce_axis((0, 65), "r1"),
        te.reduce_axis((0, 65), "r2"),
    )
    score = te.compute((8, 65, 65), lambda h, i, j: te.sum(q[h, i, r] * k[h, j, r], axis=r), name="score")
    masked = te.compute(score.shape, lambda h, i, j: score[h, i, j] * 0.1443 + mask[i, j], name="masked")
    high = te.compute((8, 65), lambda h, i: te.max(masked[h, i, first], axis=first), name="high")
    power = te.compute(score.shape, lambda h, i, j: te.exp(masked[h, i, j] - high[h, i]), name="power")
    total = te.compute((8, 65), lambda h, i: te.sum(power[h, i, second], axis=second), name="total")
    return [q, k, mask, te.compute(score.shape, lambda h, i, j: power[h, i, j] / total[h, i], name="y")]


def attention() -> list[Any]:
    """Attention of a few heads: what the softmax of the scores makes of the values."""
    *given, weights = attention_scores()
    value, r = te.placeholder((8, 65, 48), name="v"), te.reduce_axis((0, 65), "rv")
    made = te.compute((8, 65, 48), lambda h, i, c: te.sum(weights[h, i, r] * value[h, r, c], axis=r), name="z")
    return [*given, value, made]


def blur() -> list[Any]:
    """Two passes of a box, one after the other."""
    x = te.placeholder((404, 304), name="x")
    ri, rj = te.reduce_axis((0, 5), "ri"), te.reduce_axis((0, 5), "rj")
    down = te.compute((400, 304), lambda i, j: te.sum(x[i + ri, j] * 0.2, axis=ri), name="down")
    return [x, te.compute((400, 300), lambda i, j: te.sum(down[i, j + rj] * 0.2, axis=rj), name="y")]


def max_pool() -> list[Any]:
    """Over an odd window."""
    x = te.placeholder((1, 45, 57, 57), name="x")
    ri, rj = te.reduce_axis((0, 5), "ri"), te.reduce_axis((0, 5), "rj")
    return [
        x,
        te.compute(
            (1, 45, 27, 27),
            lambda n, c, i, j: te.max(x[n, c, 2 * i + ri, 2 * j + rj], axis=[ri, rj]),
            name="y",
        ),
    ]


def outer_sum() -> list[Any]:
    """Outer products of rows, summed over a batch: a product with a short reduction."""
    return transposed_product(250, 330, 6)


def tensor_product() -> list[Any]:
    """A contraction of two axes out of four."""
    a, b = te.placeholder((20, 15, 10, 12), name="a"), te.placeholder((10, 12, 50), name="b")
    p, q = te.reduce_axis((0, 10), "p"), te.reduce_axis((0, 12), "q")
    return [
        a,
        b,
        te.compute((20, 15, 50), lambda i, j, k: te.sum(a[i, j, p, q] * b[p, q, k], axis=[p, q]), name="y"),
    ]


OPERATORS: dict[str, Operator] = {
    "product 127x63x255": lambda: product(127, 63, 255),
    "product 3x1000x700": lambda: product(3, 1000, 700),
    "product 511x17x90": lambda: product(511, 17, 90),
    "product 192x192x192 float64": lambda: product(192, 192, 192, "float64"),
    "product 100x100x100 int8 into int32": lambda: product(100, 100, 100, "int8", "int32"),
    "product 37x500x130, bias, gelu": product_with_gelu,
    "both factors transposed 130x210x300": lambda: transposed_product(130, 210, 300),
    "12 products 65x50x77, scaled": batched_product,
    "sum of 6 outer products 250x330": outer_sum,
    "contraction of two axes": tensor_product,
    "conv2d 13x33x33 to 29, 3x3, padded": lambda: convolution(13, 33, 29, (3, 3), pad=1),
    "conv2d 17x61x61 to 23, 5x5, stride 2": lambda: convolution(17, 61, 23, (5, 5), stride=2),
    "conv2d 32x28x28 to 48, 1x7": lambda: convolution(32, 28, 48, (1, 7)),
    "conv2d 24x30x30 to 24, 3x3, dilation 2": lambda: convolution(24, 30, 24, (3, 3), dilation=2),
    "conv2d 30x26x26 to 45, 3x3, 5 groups": lambda: convolution(30, 26, 45, (3, 3), groups=5),
    "depthwise 50x40x40, 7x7": lambda: depthwise(50, 40, 7),
    "conv2d NHWC 30x30x20 to 36, 3x3": convolution_channels_last,
    "conv1d 80x500 to 60, 9": convolution_1d,
    "conv3d 8x18x18x18 to 12, 3x3x3": convolution_3d,
    "max pool 45x57x57, 5x5, stride 2": max_pool,
    "softmax 77x1003": lambda: softmax(77, 1003),
    "softmax down columns 301x75": lambda: softmax(301, 75, along_rows=True),
    "layer norm 130x770": lambda: layer_norm(130, 770),
    "sum over the middle axis 30x301x70": middle_sum,
    "sum of squares 700x301": whole_sum,
    "dots of rows 1000x513": row_dots,
    "squared distances 200x300x17": distances,
    "nearest of 220 by L1": nearest,
    "attention scores 8x65x65, mask, softmax": attention_scores,
    "two box passes 400x300": blur,
}
"""The list that tuning is held to."""
