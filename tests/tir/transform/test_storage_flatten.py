"""Buffers become flat memory with the same contents."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.support.errors import LoweringError
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.storage_flatten import StorageFlatten


def loops(extents, body, kind=0):
    """A nest of loops around ``body(*variables)``."""
    variables = [tir.Var(f"i{position}", "int32") for position in range(len(extents))]
    stmt = body(*variables)
    for variable, extent in reversed(list(zip(variables, extents, strict=True))):
        stmt = tir.For(variable, 0, extent, kind, stmt)
    return stmt


def function_of(buffers, body, scalars=()):
    """A function with a parameter for each buffer."""
    handles = [tir.Var(f"{buffer.name}_handle", "handle") for buffer in buffers]
    return tir.PrimFunc([*handles, *scalars], body, buffer_map=dict(zip(handles, buffers, strict=True)))


def is_flat(function, nodes_of):
    """True if no multi-dimensional access is left."""
    return not any(
        nodes_of(function.body, kind) for kind in (tir.BufferLoad, tir.BufferStore, tir.BufferRealize)
    )


def test_parameters_are_indexed_row_by_row(apply, agree, nodes_of):
    """``A[i, j]`` of a compact (4, 6) buffer is element ``i * 6 + j`` of its memory."""
    a, b = tir.decl_buffer((4, 6), name="A"), tir.decl_buffer((4, 6), name="B")
    before = function_of([a, b], loops((4, 6), lambda i, j: tir.BufferStore(b, a[i, j] + 1.0, [i, j])))
    after = apply(before, StorageFlatten(64, handwritten=True))
    assert is_flat(after, nodes_of)
    (store,) = nodes_of(after.body, tir.Store)
    i, j = after.body.loop_var, after.body.body.loop_var
    assert expr_deep_equal(store.index, i * 6 + j)
    assert store.buffer_var is b.data and after.buffer_map == before.buffer_map
    agree(before, after, np.random.default_rng(0).random((4, 6), "float32"), np.zeros((4, 6), "float32"))


def test_realized_box_starts_at_its_minimum(apply, agree, nodes_of):
    """Only the box of a realization has memory, and indices count from its corner."""
    out, temporary = tir.decl_buffer((8, 8), "int32", "Out"), tir.decl_buffer((8, 8), "int32", "T")

    def row(i):
        fill = loops((8,), lambda j: tir.BufferStore(temporary, i * 8 + j, [i, j]))
        use = loops((8,), lambda j: tir.BufferStore(out, temporary[i, j] * 2, [i, j]))
        box = [Range.from_min_extent(i, 1), Range.from_min_extent(0, 8)]
        return tir.BufferRealize(temporary, box, True, tir.SeqStmt([fill, use]))

    before = function_of([out], loops((8,), row))
    after = apply(before, StorageFlatten(64, handwritten=True))
    assert is_flat(after, nodes_of)
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert [extent.value for extent in allocate.extents] == [1, 8]
    first = allocate.body[0].body
    assert first.index is allocate.body[0].loop_var
    agree(before, after, np.zeros((8, 8), "int32"))


def test_strides_and_offset_of_a_parameter(apply, agree, nodes_of):
    """Symbolic strides and an element offset take part in the index."""
    strides = [tir.Var("s0", "int32"), tir.Var("s1", "int32")]
    a = tir.decl_buffer((3, 4), "int32", "A", strides=strides, elem_offset=tir.Var("offset", "int32"))
    b = tir.decl_buffer((3, 4), "int32", "B")
    before = function_of([a, b], loops((3, 4), lambda i, j: tir.BufferStore(b, a[i, j], [i, j])))
    after = apply(before, StorageFlatten(64, handwritten=True))
    whole = np.arange(3 * 16, dtype="int32").reshape(3, 16)
    (load,) = nodes_of(after.body, tir.Load)
    used = nodes_of(load.index, tir.Var)
    assert all(any(found is stride for found in used) for stride in [*strides, a.elem_offset])
    agree(before, after, whole[:, ::4], np.zeros((3, 4), "int32"))


def test_broadcast_parameter(apply, agree):
    """A dimension of size one of an auto_broadcast buffer stands for any size: its stride is zero."""
    sizes = [tir.SizeVar("p", "int32"), tir.SizeVar("q", "int32")]
    a = tir.decl_buffer(sizes, "int32", "A", buffer_type="auto_broadcast")
    b = tir.decl_buffer((3, 4), "int32", "B")
    before = function_of([a, b], loops((3, 4), lambda i, j: tir.BufferStore(b, a[i, j], [i, j])))
    after = apply(before, StorageFlatten(64, handwritten=True))
    for shape in ((3, 4), (1, 4), (3, 1), (1, 1)):
        data = np.arange(np.prod(shape), dtype="int32").reshape(shape)
        result = agree(before, after, data, np.zeros((3, 4), "int32"))[1]
        np.testing.assert_array_equal(result, np.broadcast_to(data, (3, 4)))


def test_bool_is_stored_as_a_byte(apply, agree, nodes_of):
    """A bool buffer is read and written as int8."""
    a, b = tir.decl_buffer((4,), "bool", "A"), tir.decl_buffer((4,), "bool", "B")
    before = function_of([a, b], loops((4,), lambda i: tir.BufferStore(b, tir.Not(a[i]), [i])))
    after = apply(before, StorageFlatten(64, handwritten=True))
    (load,) = nodes_of(after.body, tir.Load)
    (store,) = nodes_of(after.body, tir.Store)
    assert load.dtype == "int8" and store.value.dtype == "int8"
    agree(before, after, np.array([True, False, True, True]), np.zeros(4, bool))


def test_vector_access(apply, agree, nodes_of):
    """A ramp as the last index becomes a ramp of flat indices; a buffer of vectors is read as scalars."""
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((4, 8), name="B")
    before = function_of([a, b], loops((4,), lambda i: b.vstore([i, 0], a.vload([i, 0], "float32x8") * 2.0)))
    after = apply(before, StorageFlatten(64, handwritten=True))
    (store,) = nodes_of(after.body, tir.Store)
    assert isinstance(store.index, tir.Ramp) and store.index.stride.value == 1
    agree(before, after, np.random.default_rng(0).random((4, 8), "float32"), np.zeros((4, 8), "float32"))

    a, b = tir.decl_buffer((6,), "float32x4", "A"), tir.decl_buffer((6,), "float32x4", "B")
    before = function_of([a, b], loops((6,), lambda i: tir.BufferStore(b, a[i] + a[i], [i])))
    after = apply(before, StorageFlatten(64, handwritten=True))
    (store,) = nodes_of(after.body, tir.Store)
    assert isinstance(store.index, tir.Ramp) and store.index.lanes == 4
    agree(before, after, np.random.default_rng(0).random((6, 4), "float32"), np.zeros((6, 4), "float32"))


def test_aligned_dimension(apply, agree, nodes_of):
    """``buffer_dim_align`` gives a stride the asked remainder, and the allocation the room for it."""
    out, temporary = tir.decl_buffer((4, 6), "int32", "Out"), tir.decl_buffer((4, 6), "int32", "T")
    fill = loops((4, 6), lambda i, j: tir.BufferStore(temporary, i * 10 + j, [i, j]))
    use = loops((4, 6), lambda i, j: tir.BufferStore(out, temporary[i, j], [i, j]))
    box = [Range(0, 4), Range(0, 6)]
    body = tir.BufferRealize(temporary, box, True, tir.SeqStmt([fill, use]))
    before = function_of([out], tir.AttrStmt(temporary, "buffer_dim_align", tir.tvm_tuple(0, 8, 1), body))
    after = apply(before, StorageFlatten(64, handwritten=True))
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert [extent.value for extent in allocate.extents] == [4 * 9]
    agree(function_of([out], body), after, np.zeros((4, 6), "int32"))


def bound_program(window, box, body, size=(8, 16)):
    """A function that doubles its buffer through a window: for each tile, ``body(window)`` under a binding."""
    out = tir.decl_buffer(size, "int32", "Out")

    def tile(i, j):
        numbers = [number for pair in box(i, j) for number in pair]
        return tir.AttrStmt([window, out], "buffer_bind_scope", tir.tvm_tuple(*numbers), body())

    return function_of([out], loops((size[0] // 4, size[1] // 4), tile))


def window_of(shape, **options):
    """A window with symbolic strides and offset, as a tensor intrinsic declares it."""
    strides = [tir.Var(f"w{position}", "int32") for position in range(len(shape))]
    return tir.decl_buffer(
        shape, "int32", "W", strides=strides, elem_offset=tir.Var("w_offset", "int32"), **options
    )


def test_window_of_another_buffer(apply, agree, nodes_of):
    """A bound buffer reads and writes the region it stands for, and its strides have values."""
    window = window_of((4, 4), offset_factor=4)

    def body():
        return loops(
            (4, 4), lambda x, y: tir.BufferStore(window, window[x, y] * 2 + window.strides[0], [x, y])
        )

    before = bound_program(window, lambda i, j: ((i * 4, 4), (j * 4, 4)), body)
    after = apply(before, StorageFlatten(64, handwritten=True))
    assert is_flat(after, nodes_of) and not nodes_of(after.body, tir.AttrStmt)
    data = np.arange(128, dtype="int32").reshape(8, 16)
    (result,) = agree(before, after, data)
    np.testing.assert_array_equal(result, data * 2 + 16)


def test_window_with_fewer_dimensions(apply, agree):
    """Outer dimensions of size one may be left out."""
    window = window_of((4,))

    def body():
        return loops((4,), lambda x: tir.BufferStore(window, window[x] + 1, [x]))

    before = bound_program(window, lambda i, j: ((i * 4 + 1, 1), (j * 4, 4)), body)
    after = apply(before, StorageFlatten(64, handwritten=True))
    data = np.zeros((8, 16), "int32")
    expected = data.copy()
    expected[1::4] = 1
    interpret(after, data)
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize(
    ("window", "box", "message"),
    [
        (window_of((4, 4), offset_factor=16), lambda i, j: ((i * 4, 4), (j * 4, 4)), "offset_factor 16"),
        (
            window_of((4, 8)),
            lambda i, j: ((i * 4, 4), (j * 4, 4)),
            "shape is declared as 8, the region has 4",
        ),
        (
            tir.decl_buffer((4, 4), "int32", "W", elem_offset=tir.Var("o", "int32")),
            lambda i, j: ((i * 4, 4), (j * 4, 4)),
            "declared compact",
        ),
        (window_of((4, 4, 4)), lambda i, j: ((i * 4, 4), (j * 4, 4)), "has 3 dimensions"),
        (window_of((4,)), lambda i, j: ((i * 4, 4), (j * 4, 4)), "outer ones are not 1"),
        (
            tir.decl_buffer((4, 4), "float32", "W"),
            lambda i, j: ((i * 4, 4), (j * 4, 4)),
            "float32 cannot be bound",
        ),
    ],
)
def test_window_that_does_not_fit_is_an_error(apply, window, box, message):
    """A region that breaks the declaration of the window is refused, with the reason."""
    with pytest.raises(LoweringError, match=message):
        apply(bound_program(window, box, lambda: tir.Evaluate(0)), StorageFlatten(64, handwritten=True))


def test_default_scope_follows_the_threads(apply, nodes_of):
    """A buffer without a scope is shared under a block index and local under a thread index."""
    block = tir.IterVar((0, 4), "blockIdx.x", 1, "blockIdx.x")
    thread = tir.IterVar((0, 4), "threadIdx.x", 1, "threadIdx.x")
    inner, outer = tir.decl_buffer((4,), "int32", "inner"), tir.decl_buffer((4,), "int32", "outer")
    body = tir.SeqStmt([tir.BufferStore(inner, 1, [0]), tir.BufferStore(outer, inner[0], [0])])
    body = tir.BufferRealize(inner, [Range(0, 4)], True, body)
    body = tir.AttrStmt(thread, "thread_extent", 4, body)
    body = tir.BufferRealize(outer, [Range(0, 4)], True, body)
    after = apply(
        tir.PrimFunc([], tir.AttrStmt(block, "thread_extent", 4, body)), StorageFlatten(64, handwritten=True)
    )
    scopes = {
        found.buffer_var.name: found.buffer_var.storage_scope for found in nodes_of(after.body, tir.Allocate)
    }
    assert scopes == {"inner": "local", "outer": "shared"}
    stored = {found.buffer_var.storage_scope for found in nodes_of(after.body, tir.Store)}
    assert stored == {"local", "shared"}


def test_storage_scope_attribute(apply, nodes_of):
    """``storage_scope`` around a realization says where it lives."""
    buffer = tir.decl_buffer((4,), "int32", "T")
    body = tir.BufferRealize(buffer, [Range(0, 4)], True, tir.BufferStore(buffer, 1, [0]))
    after = apply(
        tir.PrimFunc([], tir.AttrStmt(buffer, "storage_scope", "shared", body)),
        StorageFlatten(64, handwritten=True),
    )
    assert after.body.buffer_var.storage_scope == "shared"
    assert after.body.body.buffer_var is after.body.buffer_var


def test_double_buffer_attribute_names_the_memory(apply, nodes_of):
    """``double_buffer_scope`` speaks of the buffer's pointer afterwards."""
    buffer = tir.decl_buffer((4,), "int32", "T")
    fill = tir.AttrStmt(buffer, "double_buffer_scope", 1, tir.BufferStore(buffer, 1, [0]))
    after = apply(
        tir.PrimFunc([], tir.BufferRealize(buffer, [Range(0, 4)], True, fill)),
        StorageFlatten(64, handwritten=True),
    )
    (attribute,) = nodes_of(after.body, tir.AttrStmt)
    assert attribute.node is after.body.buffer_var


def test_prefetch_touches_every_cache_line(apply, nodes_of):
    """A prefetch of a row of 64 floats hints at four cache lines."""
    a = tir.decl_buffer((4, 64), name="A")
    row = tir.Var("row", "int32")
    body = tir.Prefetch(a, [Range.from_min_extent(row, 1), Range.from_min_extent(0, 64)])
    after = apply(function_of([a], body, [row]), StorageFlatten(64, handwritten=True))
    assert isinstance(after.body, tir.For) and after.body.extent.value == 4
    (load,) = nodes_of(after.body, tir.Load)
    assert expr_deep_equal(load.index, row * 64 + after.body.loop_var * 16)


def test_prefetch_joins_short_rows(apply, nodes_of):
    """Rows of four floats share a cache line: eight of them need two hints; part of a row needs one a row."""
    a = tir.decl_buffer((100, 4), name="A")
    for length, hints in ((4, 2), (3, 8)):
        body = tir.Prefetch(a, [Range.from_min_extent(0, 8), Range.from_min_extent(0, length)])
        after = apply(function_of([a], body), StorageFlatten(64, handwritten=True))
        assert [loop.extent.value for loop in nodes_of(after.body, tir.For)] == [hints]


def test_bounds_for_instrumentation(apply, nodes_of):
    """``create_bound_attribute`` attaches the number of elements of every buffer."""
    a, temporary = tir.decl_buffer((4, 8), "int32", "A"), tir.decl_buffer((4, 8), "int32", "T")
    box = [Range(0, 2), Range(0, 8)]
    body = tir.BufferRealize(temporary, box, True, tir.BufferStore(temporary, a[0, 0], [0, 0]))
    after = apply(function_of([a], body), StorageFlatten(64, True, True))
    bounds = {found.node.name: found.value.value for found in nodes_of(after.body, tir.AttrStmt)}
    assert bounds == {"A": 32, "T": 16}


def test_scalar_buffer(apply, agree):
    """A buffer without dimensions has one element."""
    out, temporary = tir.decl_buffer((1,), "int32", "Out"), tir.decl_buffer((), "int32", "T")
    use = tir.SeqStmt([tir.BufferStore(temporary, 7, []), tir.BufferStore(out, temporary[()] + 1, [0])])
    before = function_of([out], tir.BufferRealize(temporary, [], True, use))
    after = apply(before, StorageFlatten(64, handwritten=True))
    (result,) = agree(before, after, np.zeros(1, "int32"))
    assert result[0] == 8


def test_wrong_number_of_indices_is_an_error(apply):
    """An access with too few indices names the buffer."""
    a = tir.decl_buffer((4, 8), "int32", "A")
    with pytest.raises(LoweringError, match="A has 2 dimensions and is accessed with 1"):
        apply(function_of([a], tir.BufferStore(a, 1, [0])), StorageFlatten(64, handwritten=True))
