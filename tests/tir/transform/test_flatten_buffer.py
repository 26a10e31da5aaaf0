"""Programs of blocks become flat loops."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from tilewright.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from tilewright.tir.transform.flatten_buffer import FlattenBuffer
from tilewright.tir.transform.lower_init_block import LowerInitBlock
from tilewright.tir.transform.lower_match_buffer import LowerMatchBuffer
from tilewright.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from tilewright.tir.transform.storage_flatten import StorageFlatten
from tilewright.tir.transform.unify_thread_binding import UnifyThreadBinding


def axis(name, extent, kind=0):
    """A block axis."""
    return tir.IterVar(Range(0, extent), tir.Var(name, "int32"), kind)


def matrix_product(n=6, m=4, k=5):
    """T = A times B, block by block; C = T + 1."""
    a, b = tir.decl_buffer((n, k), "int32", "A"), tir.decl_buffer((k, m), "int32", "B")
    t, c = tir.decl_buffer((n, m), "int32", "T"), tir.decl_buffer((n, m), "int32", "C")
    i, j, l = (tir.Var(name, "int32") for name in "ijl")
    vi, vj, vk = axis("vi", n), axis("vj", m), axis("vk", k, tir.IterVar.CommReduce)
    x, y, z = vi.var, vj.var, vk.var
    update = tir.BufferStore(t, t[x, y] + a[x, z] * b[z, y], [x, y])
    product = tir.Block([vi, vj, vk], [], [], "T", update, init=tir.BufferStore(t, 0, [x, y]))
    wi, wj = axis("wi", n), axis("wj", m)
    finish = tir.Block([wi, wj], [], [], "C", tir.BufferStore(c, t[wi.var, wj.var] + 1, [wi.var, wj.var]))
    j2 = tir.Var("j2", "int32")
    row = tir.SeqStmt(
        [
            tir.For(j, 0, m, 0, tir.For(l, 0, k, 0, tir.BlockRealize([i, j, l], True, product))),
            tir.For(j2, 0, m, 0, tir.BlockRealize([i, j2], True, finish)),
        ]
    )
    root = tir.Block([], [], [], "root", tir.For(i, 0, n, 0, row), alloc_buffers=[t])
    return tir.PrimFunc([a, b, c], tir.BlockRealize([], True, root))


BLOCK_PASSES = (
    LowerInitBlock(),
    PlanAndUpdateBufferAllocationLocation(),
    ConvertBlocksToOpaque(),
    UnifyThreadBinding(),
    CompactBufferAllocation(),
    LowerMatchBuffer(),
    FlattenBuffer(),
)


def test_matrix_product_through_all_block_passes(apply, agree, nodes_of):
    """A reduction with an intermediate buffer computes the same at the end; one row of the buffer is kept."""
    before = matrix_product()
    after = apply(before, StorageFlatten(64, handwritten=True), *BLOCK_PASSES)
    for kind in (tir.BlockRealize, tir.BufferLoad, tir.BufferStore):
        assert not nodes_of(after.body, kind)
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert [extent.value for extent in allocate.extents] == [4]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (6, 5)).astype("int32"), rng.integers(0, 9, (5, 4)).astype("int32")
    result = agree(before, after, a, b, np.zeros((6, 4), "int32"))[2]
    np.testing.assert_array_equal(result, a @ b + 1)


def one_block(body, alloc=(), predicate=True):
    """A block without axes around a statement."""
    return tir.BlockRealize([], predicate, tir.Block([], [], [], "b", body, alloc_buffers=alloc))


def test_predicates_are_likely(apply, agree):
    """Where asked for, each condition of a block is marked likely: ``LoopPartition`` splits off its end."""
    b = tir.decl_buffer((8,), "int32", "B")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    index = i * 3 + j
    block = one_block(tir.BufferStore(b, index, [index]), predicate=tir.all(index < 8, i < 3))
    before = tir.PrimFunc([b], tir.For(i, 0, 4, 0, tir.For(j, 0, 3, 0, block)))
    after = apply(before, FlattenBuffer(likely_predicates=True))
    outer = after.body.body.body
    assert (
        str(outer.condition) == "T.likely(i * 3 + j < 8)"
        and str(outer.then_case.condition) == "T.likely(i < 3)"
    )
    agree(before, after, np.zeros(8, "int32"))


def test_predicate_becomes_a_branch(apply, agree):
    """The predicate of a block guards its body."""
    b, i = tir.decl_buffer((8,), "int32", "B"), tir.Var("i", "int32")
    before = tir.PrimFunc(
        [b], tir.For(i, 0, 8, 0, one_block(tir.BufferStore(b, i, [i]), predicate=i % 3 == 0))
    )
    after = apply(before, FlattenBuffer())
    assert isinstance(after.body.body, tir.IfThenElse)
    agree(before, after, np.zeros(8, "int32"))


def test_loop_of_one_iteration_disappears(apply):
    """A loop of one iteration is its body, unless the context keeps it."""
    b, i = tir.decl_buffer((8,), "int32", "B"), tir.Var("i", "int32")
    function = tir.PrimFunc([b], tir.For(i, 3, 1, 0, one_block(tir.BufferStore(b, i, [i]))))
    after = apply(function, FlattenBuffer())
    assert isinstance(after.body, tir.Store) and after.body.index.value == 3
    with PassContext(config={"tir.debug_keep_trivial_loop": True}):
        assert isinstance(apply(function, FlattenBuffer()).body, tir.For)


def test_thread_loops_and_pragmas_become_attributes(apply):
    """A thread-bound loop becomes a thread_extent, a virtual one a virtual_thread, a pragma an attribute."""
    b, i = tir.decl_buffer((8,), "int32", "B"), tir.Var("i", "int32")
    for tag, key in (("threadIdx.x", "thread_extent"), ("vthread", "virtual_thread")):
        thread = tir.IterVar(None, tir.Var("t", "int32"), 1, tag)
        body = one_block(tir.BufferStore(b, i, [i]))
        loop = tir.For(i, 0, 8, tir.ForKind.THREAD_BINDING, body, thread)
        after = apply(tir.PrimFunc([b], loop), FlattenBuffer())
        assert after.body.attr_key == key and after.body.node.var is i and after.body.value.value == 8
    loop = tir.For(
        i, 0, 8, 0, one_block(tir.BufferStore(b, i, [i])), None, {"pragma_unroll_explicit": 0, "kept": 1}
    )
    after = apply(tir.PrimFunc([b], loop), FlattenBuffer())
    assert after.body.attr_key == "pragma_unroll_explicit" and after.body.body.annotations == {"kept": 1}


def test_bool_and_strided_buffers(apply, agree, nodes_of):
    """A bool buffer is stored as int8, and a strided allocation has room for its strides."""
    b, i = tir.decl_buffer((4,), "bool", "B"), tir.Var("i", "int32")
    t = tir.decl_buffer((4, 2), "bool", "T", strides=[5, 1])
    body = tir.SeqStmt([tir.BufferStore(t, i > 1, [i, 1]), tir.BufferStore(b, t[i, 1], [i])])
    before = tir.PrimFunc([b], one_block(tir.For(i, 0, 4, 0, body), [t]))
    after = apply(before, FlattenBuffer())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert allocate.dtype == "int8" and allocate.extents[0].value == 20
    agree(before, after, np.zeros(4, bool))


def test_blocks_with_axes_are_refused(apply):
    """A block that still has axes names the passes to run first."""
    with pytest.raises(LoweringError, match="ConvertBlocksToOpaque"):
        apply(matrix_product(), FlattenBuffer())


def test_each_pass_has_its_functions(apply):
    """Functions made from schedules belong to StorageFlatten, those written by hand to FlattenBuffer, blocks or not;
    StorageFlatten takes the latter if asked, but no programs of blocks."""
    b = tir.decl_buffer((8,), "int32", "B")
    written = tir.PrimFunc([b], tir.BufferStore(b, 1, [0]))
    scheduled = written.with_attr("from_legacy_te_schedule", True)
    for function, own, other in (
        (written, FlattenBuffer(), StorageFlatten(64)),
        (scheduled, StorageFlatten(64), FlattenBuffer()),
    ):
        assert apply(function, other).body is function.body
        assert isinstance(apply(function, own).body, tir.Store)
    blocks = matrix_product()
    assert apply(blocks, StorageFlatten(64, handwritten=True)).body is blocks.body


def test_memory_of_nobody_is_refused(apply):
    """A buffer is a parameter or is allocated; the error names one that is neither."""
    b = tir.decl_buffer((8,), "int32", "B")
    with pytest.raises(LoweringError, match="buffer B is nobody's memory"):
        apply(tir.PrimFunc([], tir.BufferStore(b, 1, [0])), FlattenBuffer())
