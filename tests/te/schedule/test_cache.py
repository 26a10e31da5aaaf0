"""``cache_read`` and ``cache_write``: copies, layouts, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts, random, refused

import tilewright as tvm
from tilewright import te, tir


def matmul() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A product of 9 by 11 and 11 by 7."""
    a = te.placeholder((9, 11), name="A")
    b = te.placeholder((11, 7), name="B")
    k = te.reduce_axis((0, 11), name="k")
    return a, b, te.compute((9, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def product() -> tuple[list[np.ndarray], np.ndarray]:
    """Random operands and their product."""
    x, y = random(9, 11), random(11, 7)
    return [x, y], x @ y


def test_cache_read_makes_a_stage_between() -> None:
    """The readers named read the copy, the others the tensor."""
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((10,), lambda i: a[i] * b[i], name="C")
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "local", [b])
    assert copy.op.name == "A.local" and s[copy].scope == "local"
    assert [stage.label for stage in s.stages] == ["A", "A.local", "B", "C"]
    assert s[b].op.input_tensors == (copy,)
    assert a in s[c].op.input_tensors
    values = random(10)
    check(s, [a, c], [values], values * (values + 1))


@pytest.mark.parametrize("position", range(4))
def test_cache_read_at_every_loop(position: int) -> None:
    """The copy holds what each iteration reads, wherever it is placed."""
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "global", [c])
    s[c].split(c.op.axis[0], factor=4)
    s[copy].compute_at(s[c], s[c].leaf_iter_vars[position])
    check(s, [a, b, c], *product())


def test_cache_read_of_a_computed_tensor_twice() -> None:
    """A copy of a copy, and a second copy for another reader."""
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((10,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((10,), lambda i: b[i] + c[i], name="D")
    s = te.create_schedule(d.op)
    first = s.cache_read(b, "shared", [c])
    second = s.cache_read(first, "local", [c])
    third = s.cache_read(b, "shared", [d])
    assert [first.op.name, second.op.name, s[third].label] == ["B.shared", "B.shared.local", "B.d.shared"]
    values = random(10)
    check(s, [a, d], [values], (values + 1) * 3)


def test_cache_read_of_one_of_two_outputs() -> None:
    """The copy of the second output carries its number."""
    a = te.placeholder((6,), name="A")
    one, two = te.compute((6,), lambda i: (a[i], a[i] * 2.0), name="T")
    c = te.compute((6,), lambda i: one[i] + two[i], name="C")
    s = te.create_schedule(c.op)
    assert s.cache_read(two, "local", [c]).op.name == "T.v1.local"
    values = random(6)
    check(s, [a, c], [values], values * 3)


def test_cache_read_refuses() -> None:
    """Foreign tensors, readers that do not read, no readers."""
    a, b, c = matmul()
    other = te.placeholder((3,), name="other")
    s = te.create_schedule(c.op)
    refused(
        s, lambda: s.cache_read(other, "local", [c]), "cache_read of other", "not a tensor of this schedule"
    )
    refused(s, lambda: s.cache_read("A", "local", [c]), "cache_read of 'A'")  # type: ignore[arg-type]
    refused(s, lambda: s.cache_read(a, "local", []), "cache_read of A", "name the readers")
    refused(s, lambda: s.cache_read(a, "local", [other]), "cache_read of A", "other is not part")
    refused(s, lambda: s.cache_read(a, "local", [b.op]), "cache_read of A", "B does not read it")
    refused(s, lambda: s.cache_read(a, 3, [c]), "cache_read of A", "3 is not the name of a storage scope")  # type: ignore[arg-type]


def test_cache_write() -> None:
    """The cache computes, the stage copies; the user's tensor still names the stage."""
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "local")
    assert cache.op.name == "C.local" and s[cache].scope == "local"
    assert s[c].op.reduce_axis == () and len(s[cache].op.reduce_axis) == 1
    outer, _ = s[c].split(c.op.axis[1], factor=4)
    s[cache].compute_at(s[c], outer)
    check(s, [a, b, c], *product(), compiled=True)
    realized = parts(tvm.driver.schedule_to_module(s, [a, b, c])["main"], tir.BufferRealize)
    assert [[bound.extent.value for bound in one.bounds] for one in realized] == [[1, 4]]


@pytest.mark.parametrize("sizes", [(4, 3), (2, 7), (16, 16), (5, 5)])
def test_cache_write_takes_the_layout_of_the_axes(sizes: tuple[int, int]) -> None:
    """After tiling, the cache has one dimension a leaf, padded where the tiles do not divide."""
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    s[c].tile(*c.op.axis, *sizes)
    cache = s.cache_write(c, "global")
    rows, columns = min(sizes[0], 9), min(sizes[1], 7)
    wanted = [-(-9 // rows), -(-7 // columns), rows, columns]
    assert [extent.value for extent in cache.shape] == wanted
    check(s, [a, b, c], *product())


def test_cache_write_after_fusing_and_splitting_the_reduction() -> None:
    """Fused data axes and a split reduction, neither divided evenly, in another order."""
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    fused = s[c].fuse(*c.op.axis)
    outer, inner = s[c].split(fused, factor=10)
    k_outer, k_inner = s[c].split(c.op.reduce_axis[0], factor=4)
    s[c].reorder(inner, k_outer, outer, k_inner)
    cache = s.cache_write(c, "global")
    assert [extent.value for extent in cache.shape] == [10, 7]
    s[cache].unroll(s[cache].op.reduce_axis[1])
    check(s, [a, b, c], *product(), compiled=True)


def test_cache_write_of_a_relayout_of_elements() -> None:
    """A computation without a reduction, packed in blocks that do not divide, over a symbolic size."""
    n = te.var("n")
    a = te.placeholder((n, 5), name="A")
    b = te.compute((n, 5), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].reorder(outer, b.op.axis[1], inner)
    s.cache_write(b, "global")
    values = random(10, 5)
    check(s, [a, b], [values], values * 2)


def test_cache_write_of_a_pair() -> None:
    """All outputs are cached together."""
    a = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    reducer = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda s, p: (tir.const(0, s), tir.const(1, p)), name="both"
    )
    total, product = te.compute((6,), lambda i: reducer((a[i, k], a[i, k]), axis=k), name="R")
    s = te.create_schedule(total.op)
    caches = s.cache_write([total, product], "local")
    assert [cache.value_index for cache in caches] == [0, 1]
    s[caches[0]].compute_at(s[total], total.op.axis[0])
    values = random(6, 8)
    check(s, [a, total, product], [values], [values.sum(1), values.prod(1)])
    s = te.create_schedule(total.op)
    refused(s, lambda: s.cache_write(total, "local"), "cache_write of R.v0", "all 2 outputs")


def test_cache_write_of_what_an_intrinsic_computes() -> None:
    """The intrinsic fills the cache in loops of its own; once the axes are split it is too late."""
    left, right = te.placeholder((4,), name="l"), te.placeholder((4,), name="r")
    added = te.compute((4,), lambda i: left[i] + right[i], name="added")

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        x, y, out = (builder.buffer_ptr(one) for one in (*ins, *outs))
        with builder.for_range(0, 4, "i") as i:
            out[i] = x[i] + y[i]
        return builder.get()

    intrin = te.decl_tensor_intrin(added.op, emit, default_buffer_params={"offset_factor": 1})
    a, b = te.placeholder((3, 4), name="A"), te.placeholder((3, 4), name="B")
    c = te.compute((3, 4), lambda i: intrin(a[i, 0:4], b[2 - i, 0:4]), name="C")
    s = te.create_schedule(c.op)
    s.cache_read(a, "local", c)
    cached = s.cache_write(c, "local")
    s[cached].compute_at(s[c], s[c].op.axis[0])
    x, y = random(3, 4), random(3, 4) + 1
    check(s, [a, b, c], [x, y], x + y[::-1])
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 2)
    refused(s, lambda: s.cache_write(c, "local"), "cache_write of C", "before its axes are transformed")


def test_cache_write_refuses() -> None:
    """Inputs, foreign tensors, nothing, and stages with bound axes."""
    a, _, c = matmul()
    s = te.create_schedule(c.op)
    refused(s, lambda: s.cache_write(a, "local"), "cache_write of A", "PlaceholderOp")
    refused(
        s, lambda: s.cache_write(te.placeholder((1,), name="X"), "local"), "cache_write of X", "not a tensor"
    )
    refused(s, lambda: s.cache_write([], "local"), "cache_write")
    refused(s, lambda: s.cache_write(c, None), "cache_write of C", "None is not the name")  # type: ignore[arg-type]
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    refused(s, lambda: s.cache_write(c, "local"), "cache_write of C", "bound to a thread")


def test_caches_of_caches() -> None:
    """Reads through shared and local copies, the result through a local cache: the shape of a GPU kernel."""
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    shared = [s.cache_read(one, "shared", [c]) for one in (a, b)]
    local = [s.cache_read(one, "local", [c]) for one in shared]
    cache = s.cache_write(c, "local")
    outer, _ = s[c].split(c.op.axis[0], factor=3)
    s[cache].compute_at(s[c], outer)
    k_outer, k_inner = s[cache].split(s[cache].op.reduce_axis[0], factor=4)
    s[cache].reorder(k_outer, k_inner, *s[cache].op.axis)
    for one in shared:
        s[one].compute_at(s[cache], k_outer)
    for one in local:
        s[one].compute_at(s[cache], k_inner)
    check(s, [a, b, c], *product())


def test_cache_of_a_reduction_that_depends_on_the_element() -> None:
    """The range of a reduction and its combiner may use the index of the element; the cache uses its own."""
    x = te.placeholder((10,), name="X", dtype="float32")

    def element(n):
        k = te.reduce_axis((0, n), "k")
        limited = te.comm_reducer(
            lambda a, b: te.min(a + b, n.astype("float32")), lambda dtype: tir.const(0, dtype), "limited"
        )
        return limited(x[k], axis=k)

    y = te.compute((10,), element, name="Y")
    s = te.create_schedule(y.op)
    s.cache_write(y, "local")
    values, result = np.full(10, 2, "float32"), np.zeros(10, "float32")
    tvm.build(s, [x, y], "llvm")(values, result)
    np.testing.assert_array_equal(result, np.arange(10, dtype="float32"))
