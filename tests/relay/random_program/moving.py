"""Recipes of the operators that move data: shapes, slices, joins."""

from __future__ import annotations

from typing import Any

from tests.relay.random_program.evaluation import Value
from tests.relay.random_program.generator import ANYTHING, FLOATS, NUMBERS, Generator, recipe

from tilewright.relay.op import nn, tensor, transform

RANKS = (1, 2, 3, 4)


def factors(g: Generator, size: int) -> list[int]:
    """A shape of this many elements."""
    made: list[int] = []
    while size > 1 and len(made) < 4:
        divisors = [number for number in range(1, size + 1) if size % number == 0]
        made.append(g.choice(divisors))
        size //= made[-1]
    return [*made, size]


@recipe("reshape")
def reshape(g: Generator) -> Any:
    """To another shape, with one extent left open now and then."""
    data = g.tensor(ANYTHING)
    shape = factors(g, data.array.size)
    if g.chance(0.3):
        shape[g.integer(0, len(shape) - 1)] = -1
    return transform.reshape(data.expr, tuple(shape))


@recipe("reshape_like", "contrib_reverse_reshape")
def reshape_like(g: Generator) -> Any:
    """To the shape of another tensor."""
    data = g.tensor(ANYTHING, rank=RANKS)
    if g.chance(0.3):
        return transform.reverse_reshape(data.expr, (data.shape[0], -1))
    shape = tuple(factors(g, data.array.size))
    return transform.reshape_like(data.expr, g.tensor(FLOATS, shape=shape).expr)


@recipe("transpose")
def transpose(g: Generator) -> Any:
    """The axes in another order."""
    data = g.tensor(ANYTHING, rank=RANKS)
    if g.chance(0.2):
        return transform.transpose(data.expr)
    order = [int(axis) for axis in g.random.permutation(data.rank)]
    return transform.transpose(data.expr, [axis - data.rank if g.chance(0.2) else axis for axis in order])


@recipe("squeeze", "expand_dims")
def ones(g: Generator) -> Any:
    """Extents of one come and go."""
    data = g.tensor(ANYTHING, rank=(0, 1, 2, 3))
    short = [axis for axis, extent in enumerate(data.shape) if extent == 1]
    if short and g.chance(0.5):
        return transform.squeeze(data.expr, None if g.chance(0.3) else [g.choice(short)])
    return transform.expand_dims(data.expr, g.integer(-data.rank - 1, data.rank), g.integer(1, 2))


@recipe("tile", "repeat")
def tile(g: Generator) -> Any:
    """Several copies."""
    data = g.tensor(ANYTHING, rank=(1, 2, 3))
    if g.chance(0.5):
        return transform.repeat(data.expr, g.integer(1, 3), g.integer(-data.rank, data.rank - 1))
    return transform.tile(data.expr, g.shape(g.integer(1, data.rank + 1), 1, 3))


@recipe("reverse", "reverse_sequence")
def reverse(g: Generator) -> Any:
    """Backwards along an axis, or its beginning alone."""
    data = g.tensor(ANYTHING, rank=RANKS)
    if data.rank > 1 and g.chance(0.5):
        batch, axis = (int(one) for one in g.random.permutation(data.rank)[:2])
        lengths = g.fresh((data.shape[batch],), "int32", 1, data.shape[axis])
        return transform.reverse_sequence(data.expr, lengths.expr, seq_axis=axis, batch_axis=batch)
    return transform.reverse(data.expr, g.integer(-data.rank, data.rank - 1))


def alike(g: Generator, axis: int | None = None, dtypes: tuple[str, ...] = NUMBERS) -> list[Value]:
    """Tensors of one type, but for the extent of an axis."""
    first = g.tensor(dtypes, rank=RANKS)
    made = [first]
    for _ in range(g.integer(1, 2)):
        shape = list(first.shape)
        if axis is not None and g.chance(0.5):
            shape[axis % first.rank] = g.integer(1, 4)
        made.append(g.tensor((first.dtype,), shape=shape))
    return made


@recipe("concatenate")
def concatenate(g: Generator) -> Any:
    """Along any axis, tensors of different extents."""
    first = g.tensor(NUMBERS, rank=RANKS)
    axis = g.integer(-first.rank, first.rank - 1)
    made = [first]
    for _ in range(g.integer(1, 2)):
        shape = list(first.shape)
        if g.chance(0.5):
            shape[axis] = g.integer(1, 4)
        made.append(g.tensor((first.dtype,), shape=shape))
    return tensor.concatenate([value.expr for value in made], axis)


@recipe("stack")
def stack(g: Generator) -> Any:
    """Along a new axis."""
    made = alike(g)
    return tensor.stack([value.expr for value in made], g.integer(-made[0].rank - 1, made[0].rank))


@recipe("split")
def split(g: Generator) -> Any:
    """In equal parts, or at places."""
    data = g.tensor(NUMBERS, rank=RANKS)
    axis = g.integer(-data.rank, data.rank - 1)
    extent = data.shape[axis]
    if g.chance(0.5):
        sections = g.choice([number for number in range(1, extent + 1) if extent % number == 0])
        return transform.split(data.expr, sections, axis)
    if extent == 1:
        return None
    places = sorted({g.integer(1, extent - 1) for _ in range(2)})
    return transform.split(data.expr, tuple(places), axis)


def _bounds(g: Generator, extent: int) -> tuple[int, int, int]:
    """First, end and step of a slice that has an element."""
    step = g.choice([1, 1, 2, -1, -2])
    first, last = sorted([g.integer(0, extent - 1), g.integer(0, extent - 1)])
    if step > 0:
        return (first - extent if g.chance(0.2) else first), last + 1 + (9 if g.chance(0.1) else 0), step
    return last, first - 1 if first > 0 else -extent - 1, step


@recipe("strided_slice")
def strided_slice(g: Generator) -> Any:
    """Of all axes or of some, forwards or backwards."""
    data = g.tensor(ANYTHING, rank=RANKS)
    if 0 in data.shape:
        return None
    if g.chance(0.4):
        axis = g.integer(0, data.rank - 1)
        begin, end, step = _bounds(g, data.shape[axis])
        return transform.strided_slice(data.expr, [begin], [end], [step], axes=[axis])
    bounds = [_bounds(g, extent) for extent in data.shape[: g.integer(1, data.rank)]]
    begins, ends, steps = (list(part) for part in zip(*bounds, strict=True))
    return transform.strided_slice(data.expr, begins, ends, steps)


@recipe("strided_set")
def strided_set(g: Generator) -> Any:
    """Some elements replaced."""
    data = g.tensor(FLOATS, rank=(1, 2, 3))
    begin = [g.integer(0, extent - 1) for extent in data.shape]
    end = [g.integer(first + 1, extent) for first, extent in zip(begin, data.shape, strict=True)]
    shape = tuple(last - first for first, last in zip(begin, end, strict=True))
    new = g.tensor((data.dtype,), shape=shape)
    return transform.strided_set(data.expr, new.expr, begin, end, [1] * data.rank)


@recipe("slice_like")
def slice_like(g: Generator) -> Any:
    """As much as another tensor has."""
    data = g.tensor(ANYTHING, rank=RANKS)
    like = g.tensor(FLOATS, shape=tuple(g.integer(1, extent) for extent in data.shape))
    axes = None if g.chance(0.5) else [g.integer(-data.rank, data.rank - 1)]
    return transform.slice_like(data.expr, like.expr, axes)


@recipe("broadcast_to", "broadcast_to_like")
def broadcast(g: Generator) -> Any:
    """Extents of one are repeated."""
    data = g.tensor(ANYTHING, rank=(0, 1, 2, 3))
    shape = tuple(g.integer(1, 4) if extent == 1 else extent for extent in data.shape)
    if g.chance(0.4):
        shape = (g.integer(1, 3), *shape)
    if g.chance(0.5):
        return transform.broadcast_to(data.expr, shape)
    return transform.broadcast_to_like(data.expr, g.tensor(FLOATS, shape=shape).expr)


@recipe("zeros", "ones", "arange")
def creation(g: Generator) -> Any:
    """From nothing."""
    kind = g.choice(["float32", "int32", "int64"])
    if g.chance(0.5):
        first, step = g.integer(-3, 3), g.choice([1, 2, -1])
        return transform.arange(first, first + step * g.integer(1, 9), step, kind)
    return g.choice([tensor.zeros, tensor.ones])(g.shape(), kind)


@recipe("meshgrid")
def meshgrid(g: Generator) -> Any:
    """Coordinates of a grid."""
    rows = [g.tensor(("float32",), rank=1) for _ in range(g.integer(1, 3))]
    return transform.meshgrid([row.expr for row in rows], g.choice(["ij", "xy"]))


@recipe("layout_transform")
def layout_transform(g: Generator) -> Any:
    """To other orders, and to channels in blocks."""
    data = g.tensor(("float32", "int32"), rank=4)
    options = ["NHWC", "CHWN", "HWCN"]
    options += [f"NCHW{block}c" for block in (2, 4) if data.shape[1] % block == 0]
    return transform.layout_transform(data.expr, "NCHW", g.choice(options))


@recipe("nn.pad", "nn.mirror_pad")
def pad(g: Generator) -> Any:
    """More elements around; of a constant, or mirrored ones."""
    data = g.tensor(("float32", "float64", "int32"), rank=RANKS)
    mode = g.choice(["constant", "edge", "reflect", "mirror"])
    if mode == "mirror":
        widths = [(g.integer(0, extent), g.integer(0, extent)) for extent in data.shape]
        return nn.mirror_pad(data.expr, tuple(widths), "SYMMETRIC")
    most = [3 if mode != "reflect" else extent - 1 for extent in data.shape]
    widths = [(g.integer(0, min(limit, 3)), g.integer(0, min(limit, 3))) for limit in most]
    if mode == "constant":
        return nn.pad(data.expr, tuple(widths), g.integer(-2, 2))
    return nn.pad(data.expr, tuple(widths), pad_mode=mode)


@recipe("nn.dilate")
def dilate(g: Generator) -> Any:
    """Holes between elements."""
    data = g.tensor(FLOATS, rank=(1, 2, 3))
    return nn.dilate(data.expr, g.shape(data.rank, 1, 3), float(g.integer(0, 1)))


@recipe("nn.batch_flatten")
def batch_flatten(g: Generator) -> Any:
    """Rows."""
    return nn.batch_flatten(g.tensor(NUMBERS, rank=(2, 3, 4)).expr)


@recipe("nn.space_to_depth", "nn.depth_to_space")
def space_and_depth(g: Generator) -> Any:
    """Pixels to channels and back."""
    block, (n, c, h, w) = g.integer(1, 3), g.shape(4, 1, 2)
    if g.chance(0.5):
        data = g.tensor(("float32",), shape=(n, c, h * block, w * block))
        return nn.space_to_depth(data.expr, block)
    data = g.tensor(("float32",), shape=(n, c * block * block, h, w))
    return nn.depth_to_space(data.expr, block, mode=g.choice(["DCR", "CRD"]))


@recipe("nn.space_to_batch_nd", "nn.batch_to_space_nd")
def space_and_batch(g: Generator) -> Any:
    """Pixels to the batch and back."""
    block, (n, h, w, c) = (g.integer(1, 2), g.integer(1, 2)), g.shape(4, 1, 3)
    if g.chance(0.5):
        data = g.tensor(("float32",), shape=(n, h * block[0], w * block[1], c))
        return nn.space_to_batch_nd(data.expr, block, [(0, block[0]), (block[1], 0)])
    data = g.tensor(("float32",), shape=(n * block[0] * block[1], h + 1, w, c))
    return nn.batch_to_space_nd(data.expr, block, [(0, 1), (0, 0)])
