"""What unit tests of Relay's operators of level 3 and above ask: arrays made, moved, reduced, sorted and resized."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compat.relay_values import evaluate, rand

from tilewright import relay, te
from tilewright.relay.testing import run_infer_type


def test_zeros_ones_and_clip() -> None:
    """Constants of a shape; clip."""
    for name in ("zeros", "ones"):
        y = run_infer_type(getattr(relay, name)(shape=(124, 50), dtype="float64"))
        assert y.checked_type == relay.TensorType((124, 50), "float64")
        made = relay.create_executor().evaluate(y).numpy()
        np.testing.assert_allclose(made, getattr(np, name)((124, 50)))
    a = relay.var("a", relay.TensorType((10, 4), "float32"))
    y = relay.clip(a, 1.0, 4.0)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), "float32")
    data = rand(10, 4) * 8
    np.testing.assert_allclose(evaluate(y, [a], data), np.clip(data, 1, 4))


def test_reinterpret_and_fixed_point() -> None:
    """Bits read as another type; a product in fixed point."""
    a = relay.var("a", relay.TensorType((1000, 4), "float32"))
    y = relay.reinterpret(a, "int32")
    assert run_infer_type(y).checked_type == relay.TensorType((1000, 4), "int32")
    data = (np.random.randn(1000, 4) * 1000).astype("float32")
    assert (evaluate(y, [a], data) == data.view("int32")).all()
    a = relay.var("a", relay.TensorType((10, 4), "int32"))
    y = relay.fixed_point_multiply(a, 1073741824, -3)
    assert run_infer_type(y).checked_type == relay.TensorType((10, 4), "int32")
    data = (23 * np.ones((10, 4))).astype("int32")
    np.testing.assert_allclose(evaluate(y, [a], data), np.ones((10, 4)))


def test_transpose_squeeze_reshape() -> None:
    """Level 3: the shapes that TVM's tests try."""
    n, t, d = te.size_var("n"), te.size_var("t"), 100
    x = relay.var("x", relay.TensorType((n, t, d), "float32"))
    y = relay.transpose(x, axes=(1, 0, 2))
    assert "axes=" in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((t, n, 100), "float32")
    y = run_infer_type(relay.transpose(x))
    assert y.checked_type == relay.TensorType((100, t, n), "float32")
    for shape, new, expected in (
        ((2, 3, 4), (8, 3), (8, 3)),
        ((4, 7), (2, 7, 2), (2, 7, 2)),
        ((2, 3, 4), (4, 0, 2), (4, 3, 2)),
        ((2, 3, 4), (2, 0, 0), (2, 3, 4)),
        ((2, 3, 4), (0, -1), (2, 12)),
        ((2, 3, 4), (-1, 0), (8, 3)),
        ((2, 3, 4), (2, -2), (2, 3, 4)),
        ((2, 3, 4), (-2, 1, 1), (2, 3, 4, 1, 1)),
        ((2, 3, 4), (-3, 4), (6, 4)),
        ((2, 3, 4, 5), (-3, -3), (6, 20)),
        ((2, 3, 4), (0, -3), (2, 12)),
        ((2, 3, 4), (-4, 1, 2, -2), (1, 2, 3, 4)),
        ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)),
        ((1,), (), ()),
    ):
        x = relay.var("x", relay.TensorType(shape, "float32"))
        z = relay.reshape(x, newshape=new)
        assert "newshape=" in z.astext()
        assert run_infer_type(z).checked_type == relay.ty.TensorType(expected, "float32")
        data = rand(*shape)
        np.testing.assert_allclose(evaluate(z, [x], data), data.reshape(expected))
    for shape, new, expected in (
        ((2, 3, 4), (-3, -2), (6, 4)),
        ((2, 3, 4), (-4, 2, -1, -2), (2, 1, 3, 4)),
        ((1, 8, 6), (0, -1), None),
    ):
        del new
        if expected is not None:
            x = relay.var("x", relay.TensorType(shape, "float32"))
            like = relay.var("y", relay.TensorType(expected, "float32"))
            assert run_infer_type(relay.reshape_like(x, like)).checked_type == relay.TensorType(expected)
    for shape, axis, expected in (
        ((1, 3, 2, 5), None, (3, 2, 5)),
        ((1, 3, 1), [0], (3, 1)),
        ((1, 2, 1, 2, 1), [0, 2], (2, 2, 1)),
    ):
        x = relay.var("x", relay.TensorType(shape, "float32"))
        assert run_infer_type(relay.squeeze(x, axis=axis)).checked_type == relay.TensorType(expected)


def test_reshape_like_ranges() -> None:
    """A part of the shape taken from another tensor."""
    x = relay.var("x", shape=(1, 8, 3, 4))
    y = relay.var("y", shape=(2, 4, 3, 4))
    z = relay.reshape_like(x, y, lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=2)
    assert run_infer_type(z).checked_type == relay.TensorType((2, 4, 3, 4))
    z = relay.reshape_like(
        x, relay.var("y", shape=(4, 1, 2, 7)), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=3
    )
    assert run_infer_type(z).checked_type == relay.TensorType((4, 1, 2, 3, 4))


@pytest.mark.parametrize("mode", ["clip", "wrap", "fast"])
def test_take(mode: str) -> None:
    """Symbolic shapes and numbers, in every mode."""
    d1, d2, d3 = te.var("d1"), te.var("d2"), te.var("d3")
    d4, d5, d6 = te.var("d4"), te.var("d5"), te.var("d6")

    def verify(dshape: Any, indices_shape: Any, oshape: Any, axis: int | None = None) -> None:
        x = relay.var("x", relay.TensorType(dshape, "float32"))
        indices = relay.var("indices", relay.TensorType(indices_shape, "int32"))
        assert run_infer_type(relay.take(x, indices, axis=axis)).checked_type == relay.TensorType(
            oshape, "float32"
        )

    verify((d1,), (1,), (1,), 0)
    verify((d1, d2), (d4, d5, d6), (d4, d5, d6, d2), 0)
    verify((3, 3, 3), (1,), (1,))
    verify((d1, d2), (d4, d5, d6), (d4, d5, d6))
    verify((d1, d2, d3, d4), (d5, d6), (d1, d2, d5, d6, d4), -2)
    source = np.arange(10).reshape(5, 2).astype("float32")
    indices = np.array([0, 3, 2], dtype="int32")
    x, i = relay.var("x", shape=(5, 2)), relay.var("i", shape=(3,), dtype="int32")
    got = evaluate(relay.take(x, i, axis=0, mode=mode), [x, i], source, indices)
    np.testing.assert_allclose(got, source[indices])


@pytest.mark.parametrize(
    ("shape", "sections", "axis"),
    [((5, 5, 2, 2), 5, 1), ((5, 5, 2, 2), 5, 0), ((5, 5, 2, 2), [1, 3, 4], 0), ((5, 5, 2, 2), [4], 1)],
)
def test_split(shape: tuple[int, ...], sections: Any, axis: int) -> None:
    """Parts of one size, and parts between places."""
    x = relay.var("x", shape=shape)
    y = relay.split(x, sections, axis)
    data = rand(*shape)
    expected = np.split(data, sections, axis)
    typed = run_infer_type(y.astuple())
    assert [tuple(map(int, f.shape)) for f in typed.checked_type.fields] == [p.shape for p in expected]
    got = evaluate(y.astuple(), [x], data)
    for part, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(part, wanted)


def test_full_like_arange_meshgrid_stack() -> None:
    """Makers of tensors."""
    x = relay.var("x", shape=())
    y = relay.full(x, (1, 2, 3, 4), "float32")
    assert run_infer_type(y).checked_type == relay.TensorType((1, 2, 3, 4))
    np.testing.assert_allclose(evaluate(y, [x], np.float32(4)), np.full((1, 2, 3, 4), 4.0))
    for args in ((20,), (1, 20), (1, 20, 2), (1, 20, 1.5), (1, 20.5), (20, 1, -1)):
        made = (
            relay.arange(*[relay.const(v, "float32") for v in args[:1]])
            if len(args) == 1
            else relay.arange(*[relay.const(v, "float32") for v in args], dtype="float32")
        )
        np.testing.assert_allclose(
            relay.create_executor("graph").evaluate(relay.Function([], made))().numpy(),
            np.arange(*args).astype("float32"),
        )
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(5,))
    z = relay.meshgrid([a, b], indexing="ij")
    first, second = rand(3), rand(5)
    got = evaluate(z.astuple(), [a, b], first, second)
    for part, wanted in zip(got, np.meshgrid(first, second, indexing="ij"), strict=True):
        np.testing.assert_allclose(part, wanted)
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3))
    z = relay.stack((a, b), axis=-1)
    p, q = rand(2, 3), rand(2, 3)
    np.testing.assert_allclose(evaluate(z, [a, b], p, q), np.stack((p, q), -1))


def test_tile_repeat_reverse() -> None:
    """Copies and mirrored tensors."""
    x = relay.var("x", shape=(2, 3, 4))
    data = rand(2, 3, 4)
    np.testing.assert_allclose(evaluate(relay.tile(x, reps=(3, 2, 1)), [x], data), np.tile(data, (3, 2, 1)))
    np.testing.assert_allclose(evaluate(relay.repeat(x, 2, -1), [x], data), np.repeat(data, 2, -1))
    np.testing.assert_allclose(evaluate(relay.reverse(x, axis=1), [x], data), data[:, ::-1])
    np.testing.assert_allclose(
        evaluate(relay.reverse(x, 0), [x], data),
        data[::-1],
    )
    seq = relay.var("l", shape=(3,), dtype="int32")
    got = evaluate(relay.reverse_sequence(x, seq, 2, 1), [x, seq], data, np.array([1, 2, 4], "int32"))
    expected = data.copy()
    for position, length in enumerate((1, 2, 4)):
        expected[:, position, :length] = data[:, position, :length][:, ::-1]
    np.testing.assert_allclose(got, expected)


def test_scatter_gather() -> None:
    """scatter, scatter_add, gather, gather_nd."""
    d, i, u = (
        relay.var("d", shape=(10,)),
        relay.var("i", shape=(5,), dtype="int64"),
        relay.var("u", shape=(5,)),
    )
    data, updates = rand(10), rand(5) + 3
    places = np.array([1, 7, 3, 0, 9])
    expected = data.copy()
    expected[places] = updates
    for axis in (0, -1):
        np.testing.assert_allclose(
            evaluate(relay.op.scatter(d, i, u, axis), [d, i, u], data, places, updates), expected
        )
    added = data.copy()
    added[places] += updates
    got = evaluate(relay.op.scatter_add(d, i, u, 0), [d, i, u], data, places, updates)
    np.testing.assert_allclose(got, added, rtol=1e-6)
    d = relay.var("d", relay.TensorType((2, 2), "int32"))
    i = relay.var("i", relay.TensorType((2, 2), "int32"))
    z = relay.gather(d, 1, i)
    got = evaluate(z, [d, i], np.array([[1, 2], [3, 4]], "int32"), np.array([[0, 0], [1, 0]], "int32"))
    assert got.tolist() == [[1, 1], [4, 3]]
    x, y = relay.var("x", shape=(2, 2, 2)), relay.var("y", shape=(2, 3), dtype="int32")
    data = rand(2, 2, 2)
    indices = np.array([[0, 1, 1], [1, 0, 1]], "int32")
    np.testing.assert_allclose(evaluate(relay.gather_nd(x, y), [x, y], data, indices), data[tuple(indices)])


def test_sequence_mask_one_hot_where() -> None:
    """Level 10 and 4."""
    data = rand(5, 3)
    x, l = relay.var("x", shape=(5, 3)), relay.var("l", shape=(3,), dtype="int32")
    lengths = np.array([1, 3, 5], "int32")
    got = evaluate(relay.sequence_mask(x, l, mask_value=0.5), [x, l], data, lengths)
    expected = data.copy()
    for column, length in enumerate(lengths):
        expected[length:, column] = 0.5
    np.testing.assert_allclose(got, expected)
    i = relay.var("i", shape=(4,), dtype="int32")
    got = evaluate(
        relay.one_hot(i, relay.const(1.0), relay.const(0.0), 3, -1, "float32"),
        [i],
        np.array([0, 2, 1, 2], "int32"),
    )
    np.testing.assert_allclose(got, np.eye(3)[[0, 2, 1, 2]])
    c, p, q = (
        relay.var("c", shape=(2, 1), dtype="bool"),
        relay.var("p", shape=(2, 3)),
        relay.var("q", shape=(3,)),
    )
    cond, first, second = np.array([[True], [False]]), rand(2, 3), rand(3) + 4
    np.testing.assert_allclose(
        evaluate(relay.where(c, p, q), [c, p, q], cond, first, second), np.where(cond, first, second)
    )


@pytest.mark.parametrize("kind", ["graph", "debug", "vm"])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("sum", np.sum),
        ("max", np.max),
        ("min", np.min),
        ("mean", np.mean),
        ("variance", np.var),
        ("std", np.std),
        ("prod", np.prod),
        ("all", np.all),
        ("any", np.any),
        ("argmin", np.argmin),
        ("argmax", np.argmax),
    ],
)
def test_reductions(name: str, reference: Any, kind: str) -> None:
    """Every reduction over one axis, several, all; with kept axes and excluded ones; on each executor."""
    boolean = name in ("all", "any")
    x = relay.var("x", shape=(4, 3, 5), dtype="bool" if boolean else "float32")
    data = rand(4, 3, 5) > 0.5 if boolean else rand(4, 3, 5)
    op = getattr(relay, name)
    got = evaluate(op(x, axis=1, keepdims=True), [x], data, kind=kind)
    np.testing.assert_allclose(got, np.expand_dims(reference(data, axis=1), 1), rtol=1e-5)
    if name.startswith("arg"):
        assert op(x, axis=1) is not None
        typed = run_infer_type(op(x, axis=(1,), exclude=False)).checked_type
        assert typed.dtype == "int32"
    else:
        np.testing.assert_allclose(
            evaluate(op(x, axis=1, exclude=True), [x], data, kind=kind),
            reference(data, axis=(0, 2)),
            rtol=1e-5,
        )
    assert "keepdims" in op(x, axis=1, keepdims=True).astext()


def test_strided_slice_and_set() -> None:
    """Begin, end and strides as lists; negative ones; the size mode."""
    x = relay.var("x", shape=(3, 4, 3))
    data = rand(3, 4, 3)
    for begin, end, strides, expected in (
        ([1, 1, 0], [4, 4, 3], [1, 1, 1], data[1:4, 1:4, 0:3]),
        ([1, -1, 0], [4, -5, 3], [2, -1, 1], data[1:4:2, -1:-5:-1, 0:3]),
        ([1], [3], None, data[1:3]),
        ([0, 0], [3, 10000], None, data),
    ):
        y = relay.strided_slice(x, begin=begin, end=end, strides=strides)
        np.testing.assert_allclose(evaluate(y, [x], data), expected)
    y = relay.strided_slice(x, begin=[1, 0, 0], end=[2, -1, 3], slice_mode="size")
    np.testing.assert_allclose(evaluate(y, [x], data), data[1:3, :, :3])
    v = relay.var("v", shape=(2, 2, 3))
    y = relay.strided_set(x, v, begin=[1, 0, 0], end=[3, 2, 3], strides=[1, 1, 1])
    value = rand(2, 2, 3) + 5
    expected = data.copy()
    expected[1:3, 0:2] = value
    np.testing.assert_allclose(evaluate(y, [x, v], data, value), expected)


def test_sorting() -> None:
    """Level 6: sort, argsort, topk."""
    x = relay.var("x", shape=(4, 6))
    data = np.random.default_rng(1).permutation(24).reshape(4, 6).astype("float32")
    np.testing.assert_allclose(
        evaluate(relay.sort(x, axis=1, is_ascend=False), [x], data), -np.sort(-data, 1)
    )
    np.testing.assert_allclose(
        evaluate(relay.argsort(x, axis=0, dtype="int32"), [x], data), np.argsort(data, 0)
    )
    got = evaluate(relay.topk(x, k=2, axis=-1, ret_type="both", dtype="int64").astuple(), [x], data)
    np.testing.assert_allclose(got[0], -np.sort(-data, 1)[:, :2])
    np.testing.assert_allclose(got[1], np.argsort(-data, 1)[:, :2])
    got = evaluate(relay.topk(x, k=3, ret_type="values"), [x], data)
    np.testing.assert_allclose(got, -np.sort(-data, 1)[:, :3])


@pytest.mark.parametrize("mode", ["DCR", "CDR"])
def test_depth_to_space(mode: str) -> None:
    """Both orders, by TVM's names."""
    x = relay.var("x", shape=(1, 8, 2, 2))
    data = rand(1, 8, 2, 2)
    if mode == "DCR":
        expected = data.reshape(1, 2, 2, 2, 2, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 4)
    else:
        expected = data.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 4)
    got = evaluate(relay.nn.depth_to_space(x, 2, "NCHW", mode=mode), [x], data)
    np.testing.assert_allclose(got, expected)
    np.testing.assert_allclose(evaluate(relay.nn.space_to_depth(x, 2), [x], data).shape, (1, 32, 1, 1))


def test_image_resize2d() -> None:
    """Level 5: the size attribute, methods, layouts, types."""
    n, c = te.size_var("n"), te.size_var("c")
    x = relay.var("x", relay.TensorType((n, c, te.size_var("h"), te.size_var("w")), "int8"))
    th, tw = te.var("th"), te.var("tw")
    z = relay.image.resize2d(x, (th, tw))
    assert run_infer_type(z).checked_type == relay.TensorType((n, c, th, tw), "int8")
    x = relay.var("x", relay.TensorType((n, c, 4, 4), "int8"))
    z = relay.image.resize2d(x, (100, 200), "NCHW", "linear", "align_corners")
    assert "size=" in z.astext()
    assert run_infer_type(z).checked_type == relay.TensorType((n, c, 100, 200), "int8")
    x = relay.var("x", shape=(1, 2, 2, 1))
    data = np.arange(4, dtype="float32").reshape(1, 2, 2, 1)
    z = relay.image.resize2d(
        x,
        (4, 4),
        layout="NHWC",
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )
    np.testing.assert_allclose(evaluate(z, [x], data), data.repeat(2, 1).repeat(2, 2))


def test_batch_matmul() -> None:
    """Symbolic batch sizes; numbers with either side transposed."""
    b, m, n, k = (te.size_var(name) for name in "bmnk")
    x, y = relay.var("x", relay.TensorType((b, m, k))), relay.var("y", relay.TensorType((b, n, k)))
    assert run_infer_type(relay.nn.batch_matmul(x, y)).checked_type == relay.TensorType((b, m, n))
    x, y = relay.var("x", shape=(2, 3, 4)), relay.var("y", shape=(2, 5, 4))
    p, q = rand(2, 3, 4), rand(2, 5, 4)
    np.testing.assert_allclose(
        evaluate(relay.nn.batch_matmul(x, y), [x, y], p, q), p @ q.transpose(0, 2, 1), rtol=1e-5
    )
    y = relay.var("y", shape=(2, 4, 5))
    z = relay.nn.batch_matmul(x, y, transpose_a=False, transpose_b=False)
    np.testing.assert_allclose(
        evaluate(z, [x, y], p, q.transpose(0, 2, 1)), p @ q.transpose(0, 2, 1), rtol=1e-5
    )


def test_collapse_broadcast_like_shape_of_ndarray_size() -> None:
    """Level 10 and 4."""
    x, y = relay.var("x", shape=(3, 4, 5)), relay.var("y", shape=(4, 1))
    data = rand(3, 4, 5)
    np.testing.assert_allclose(
        evaluate(relay.collapse_sum_like(x, y), [x, y], data, rand(4, 1)),
        data.sum((0, 2)).reshape(4, 1),
        rtol=1e-5,
    )
    z = relay.broadcast_to(y, (3, 4, 5))
    np.testing.assert_allclose(evaluate(z, [y], rand(4, 1)), np.broadcast_to(rand(4, 1), (3, 4, 5)))
    np.testing.assert_allclose(
        evaluate(relay.broadcast_to_like(y, x), [y, x], rand(4, 1), data),
        np.broadcast_to(rand(4, 1), (3, 4, 5)),
    )
    assert evaluate(relay.shape_of(x), [x], data).tolist() == [3, 4, 5]
    assert evaluate(relay.ndarray_size(x), [x], data) == 60
    n = te.size_var("n")
    s = relay.var("s", relay.TensorType((n, 5)))
    assert run_infer_type(relay.shape_of(s)).checked_type == relay.TensorType((2,), "int32")


def test_cumsum_unique_invert_permutation() -> None:
    """Scans and unique values."""
    x = relay.var("x", shape=(2, 3), dtype="int32")
    data = np.array([[1, 2, 3], [4, 5, 6]], "int32")
    assert evaluate(relay.op.cumsum(x, axis=1), [x], data).tolist() == np.cumsum(data, 1).tolist()
    assert evaluate(relay.op.cumsum(x, dtype="int64"), [x], data).tolist() == np.cumsum(data).tolist()
    assert evaluate(relay.op.cumprod(x, axis=0, exclusive=True), [x], data).tolist() == [[1, 1, 1], [1, 2, 3]]
    x = relay.var("x", shape=(6,), dtype="int32")
    data = np.array([4, 1, 4, 2, 1, 4], "int32")
    for is_sorted, expected in (
        (True, [[1, 2, 4], [1, 3, 0], [2, 0, 2, 1, 0, 2], [3], [2, 1, 3]]),
        (False, [[4, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1, 0], [3], [3, 2, 1]]),
    ):
        # Values, where each first appears, the number of each element's value, how many there are, how often each is.
        found = relay.unique(x, is_sorted=is_sorted, return_counts=True).astuple()
        assert [part.tolist() for part in evaluate(found, [x], data, kind="vm")] == expected
    x = relay.var("x", shape=(4,), dtype="int32")
    assert evaluate(relay.invert_permutation(x), [x], np.array([2, 0, 3, 1], "int32")).tolist() == [
        1,
        3,
        0,
        2,
    ]
