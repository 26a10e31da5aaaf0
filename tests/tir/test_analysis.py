"""Analyses of loop programs."""

import pytest

from tilewright import tir
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import IterVar, Let, PrimExpr, Range, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import ExpressionError
from tilewright.target.target import Target
from tilewright.tir.analysis import (
    calculate_workspace_bytes,
    detect_buffer_access_lca,
    expr_deep_equal,
    get_block_access_region,
    get_block_read_write_region,
    verify_gpu_code,
    verify_memory,
    verify_ssa,
)
from tilewright.tir.analysis.verify_gpu_code import gpu_code_errors
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
    Store,
)

x, y = Var("x"), Var("y")


def pointer(name: str, dtype: str = "float32", scope: str = "") -> Var:
    """A pointer variable."""
    return Var(name, PointerType(PrimType(dtype), scope))


# Deep equality


def test_deep_equality_is_of_writing() -> None:
    """Expressions written alike are equal; variables and buffers only to themselves."""
    assert expr_deep_equal(x + y * 2, x + y * 2)
    assert not expr_deep_equal(x + y, y + x) and not expr_deep_equal(x + 1, x + 2)
    assert not expr_deep_equal(x, Var("x")) and not expr_deep_equal(
        operators.const(1), operators.const(1, "int64")
    )
    one, other = decl_buffer((4,), name="A"), decl_buffer((4,), name="A")
    assert expr_deep_equal(one[x], one[x]) and not expr_deep_equal(one[x], other[x])
    assert not expr_deep_equal(tir.exp(one[x]), tir.log(one[x]))
    assert not expr_deep_equal(Let(x, 1, x), Let(y, 1, y))


def test_deep_equality_of_graphs() -> None:
    """Shared parts are compared once, and depth does not matter."""
    one: PrimExpr = x
    two: PrimExpr = x
    for _ in range(200):
        one, two = one * one, two * two
    assert expr_deep_equal(one, two)
    chain: PrimExpr = x
    other: PrimExpr = x
    for _ in range(20_000):
        chain, other = chain + y, other + y
    assert expr_deep_equal(chain, other) and not expr_deep_equal(chain, other + y)


# Single assignment


def test_ssa() -> None:
    """A variable defined once is right; twice, in sequence or nested or as a parameter, is not."""
    i, j = Var("i"), Var("j")
    loop = For(i, 0, 4, 0, Evaluate(i + 1))
    assert verify_ssa(PrimFunc([x], SeqStmt([loop, For(j, 0, 4, 0, Evaluate(j + 1))])))
    assert not verify_ssa(PrimFunc([x], SeqStmt([loop, loop])))
    assert not verify_ssa(PrimFunc([x], For(i, 0, 4, 0, loop)))
    assert not verify_ssa(PrimFunc([i], loop))
    assert not verify_ssa(PrimFunc([x, x], Evaluate(x)))
    assert not verify_ssa(PrimFunc([], LetStmt(x, 1, LetStmt(x, 2, Evaluate(x + 1)))))


def test_ssa_of_expressions() -> None:
    """A let may be repeated with the same value, not with another, and not for a variable that a statement defines."""
    same = Let(x, y, x + 1)
    assert verify_ssa(PrimFunc([y], Evaluate(same + same)))
    assert verify_ssa(PrimFunc([y], Evaluate(Let(x, y * 2, x + 1) + Let(x, y * 2, x + 2))))
    assert not verify_ssa(PrimFunc([y], Evaluate(Let(x, y, x + 1) + Let(x, y + 1, x + 2))))
    assert not verify_ssa(PrimFunc([x, y], Evaluate(Let(x, y, x + 1))))


# Memory of devices


def copy_body(source: Var, target: Var, index: PrimExpr) -> Stmt:
    """target[index] = source[index]."""
    return Store(target, tir.Load("float32", source, index), index)


def test_memory_of_the_device() -> None:
    """On a GPU, accesses must be inside threads; on a CPU they may be anywhere."""
    a, b, i = pointer("a"), pointer("b"), Var("i")
    serial = PrimFunc([a, b], For(i, 0, 16, 0, copy_body(a, b, i)))
    axis = IterVar((0, 16), "t", IterVar.ThreadIndex, "threadIdx.x")
    threaded = PrimFunc([a, b], AttrStmt(axis, "thread_extent", 16, copy_body(a, b, axis.var)))
    assert verify_memory(serial.with_attr("target", Target("llvm")))
    assert not verify_memory(serial.with_attr("target", Target("cuda")))
    assert verify_memory(threaded.with_attr("target", Target("cuda")))


# Limits of GPUs


def kernel(threads: int = 32, shared: int = 0, local: int = 0, vector: int = 1) -> Stmt:
    """A kernel with these numbers of threads, floats of memory and lanes of its accesses."""
    a, b = pointer("a"), pointer("b")
    block = IterVar((0, 4), "b", IterVar.ThreadIndex, "blockIdx.x")
    thread = IterVar((0, threads), "t", IterVar.ThreadIndex, "threadIdx.x")
    index: PrimExpr = tir.Ramp(thread.var * vector, 1, vector) if vector > 1 else thread.var
    dtype = f"float32x{vector}" if vector > 1 else "float32"
    body: Stmt = Store(b, tir.Load(dtype, a, index), index)
    if shared:
        body = Allocate(pointer("s", scope="shared"), "float32", [shared], True, body)
    if local:
        body = Allocate(pointer("l", scope="local"), "float32", [local], True, body)
    return AttrStmt(block, "thread_extent", 4, AttrStmt(thread, "thread_extent", threads, body))


@pytest.mark.parametrize(
    ("numbers", "limit", "used"),
    [
        ({"threads": 64}, "max_threads_per_block", 64),
        ({"threads": 64}, "max_thread_x", 64),
        ({"shared": 256}, "max_shared_memory_per_block", 1024),
        ({"local": 8}, "max_local_memory_per_block", 32),
        ({"vector": 4}, "max_vector_bytes", 16),
        ({}, "max_kernels", 1),
    ],
)
def test_gpu_limits(numbers: dict[str, int], limit: str, used: int) -> None:
    """Each limit holds at the number used, and is exceeded one below it."""
    function = PrimFunc([], kernel(**numbers))
    assert verify_gpu_code(function, {limit: used})
    assert not verify_gpu_code(function, {limit: used - 1})
    assert gpu_code_errors(function, {limit: used - 1})[0].endswith(
        f"is {used}, more than {limit} = {used - 1}"
    )


def test_gpu_kernels_are_apart() -> None:
    """Two kernels do not add up; virtual threads multiply."""
    function = PrimFunc([], SeqStmt([kernel(shared=64), kernel(shared=64)]))
    assert verify_gpu_code(
        function, {"max_shared_memory_per_block": 256, "max_threads_per_block": 32, "max_kernels": 2}
    )
    assert not verify_gpu_code(function, {"max_kernels": 1})
    virtual = IterVar((0, 4), "v", IterVar.ThreadIndex, "vthread")
    function = PrimFunc([], AttrStmt(virtual, "virtual_thread", 4, kernel(threads=8)))
    assert verify_gpu_code(function, {"max_threads_per_block": 32, "max_vthread": 4})
    assert not verify_gpu_code(function, {"max_vthread": 3})


def test_gpu_inconsistent_extents() -> None:
    """One thread axis has one constant extent in a kernel."""
    first = IterVar((0, 8), "t", IterVar.ThreadIndex, "threadIdx.x")
    second = IterVar((0, 16), "t", IterVar.ThreadIndex, "threadIdx.x")
    block = IterVar((0, 4), "b", IterVar.ThreadIndex, "blockIdx.x")
    both = SeqStmt(
        [AttrStmt(first, "thread_extent", 8, Evaluate(0)), AttrStmt(second, "thread_extent", 16, Evaluate(0))]
    )
    assert not verify_gpu_code(PrimFunc([], AttrStmt(block, "thread_extent", 4, both)), {})
    assert not verify_gpu_code(PrimFunc([], AttrStmt(first, "thread_extent", x, Evaluate(0))), {})
    assert verify_gpu_code(PrimFunc([], AttrStmt(block, "thread_extent", x, Evaluate(0))), {})


def test_gpu_unknown_limit() -> None:
    """A limit that does not exist is an error."""
    with pytest.raises(ExpressionError, match="max_warps is not a limit"):
        verify_gpu_code(PrimFunc([], Evaluate(0)), {"max_warps": 1})


# Workspace


def test_workspace() -> None:
    """Nested allocations add up, those in sequence do not; sizes are rounded up to the alignment."""
    small = Allocate(pointer("a", "int8"), "int8", [10], True, Evaluate(0))
    large = Allocate(pointer("b"), "float32", [4, 8], True, Evaluate(0))
    assert calculate_workspace_bytes(PrimFunc([], SeqStmt([small, large])), 1) == 128
    nested = Allocate(pointer("c", "int8"), "int8", [10], True, SeqStmt([small, large]))
    assert calculate_workspace_bytes(PrimFunc([], nested), 1) == 138
    assert calculate_workspace_bytes(PrimFunc([], nested), 16) == 16 + 128
    symbolic = Allocate(pointer("d"), "float32", [x], True, Evaluate(0))
    assert calculate_workspace_bytes(PrimFunc([], symbolic), 1) == 0
    vectors = Allocate(pointer("e", "float32x4"), "float32x4", [2], True, Evaluate(0))
    assert calculate_workspace_bytes(PrimFunc([], vectors), 1) == 32
    with pytest.raises(ExpressionError, match="alignment"):
        calculate_workspace_bytes(PrimFunc([], nested), 0)


# Common ancestors of accesses


def block(name: str, body: Stmt, *allocated: Buffer) -> BlockRealize:
    """A block without axes."""
    return BlockRealize([], True, Block([], [], [], name, body, alloc_buffers=allocated))


def test_common_ancestors() -> None:
    """A buffer belongs to the innermost loop or block around all its accesses."""
    a, b, c, d = (decl_buffer((16,), name=name) for name in "ABCD")
    i, j = Var("i"), Var("j")
    inner = block("inner", SeqStmt([BufferStore(d, b[j], [j]), BufferStore(c, d[j] + a[j], [j])]), d)
    second = For(j, 0, 16, 0, inner)
    first = For(i, 0, 16, 0, BufferStore(b, a[i] * 2.0, [i]))
    root = block("root", SeqStmt([first, second]), b, d)
    found = detect_buffer_access_lca(PrimFunc([a, c], root))
    assert found[a] is root.block and found[b] is root.block
    assert found[c] is inner.block and found[d] is inner.block


def test_common_ancestor_is_the_function() -> None:
    """Without a block or loop around all accesses there is none."""
    a = decl_buffer((16,), name="A")
    i = Var("i")
    loop = For(i, 0, 16, 0, BufferStore(a, 1.0, [i]))
    assert detect_buffer_access_lca(PrimFunc([a], SeqStmt([loop, BufferStore(a, 2.0, [0])]))) == {a: None}
    assert detect_buffer_access_lca(PrimFunc([a], loop)) == {a: loop}


def test_opaque_and_matched_accesses() -> None:
    """Memory that is used through its pointer, or through another view, is accessed there."""
    a, b, view = decl_buffer((16,), name="A"), decl_buffer((16,), name="B"), decl_buffer((4,), name="V")
    i = Var("i")
    match = MatchBufferRegion(view, BufferRegion(b, (Range.from_min_extent(0, 4),)))
    called = Evaluate(tir.call_extern("int32", "f", a.data))
    inner = Block([], [], [], "inner", SeqStmt([called, BufferStore(view, 1.0, [0])]), match_buffers=[match])
    loop = For(i, 0, 4, 0, BlockRealize([], True, inner))
    found = detect_buffer_access_lca(PrimFunc([a, b], loop))
    assert found[a] is inner and found[b] is inner and found[view] is inner


# Regions of blocks


def regions(found: list[BufferRegion]) -> dict[str, list[tuple[str, str]]]:
    """Regions by buffer name, as text."""
    return {each.buffer.name: [(str(part.min), str(part.extent)) for part in each.region] for each in found}


def test_regions_of_a_block() -> None:
    """Loops inside the block are relaxed, its own axes stay; several accesses are joined."""
    a, b, c = (
        decl_buffer((16, 16), name="A"),
        decl_buffer((16, 16), name="B"),
        decl_buffer((16, 16), name="C"),
    )
    axis, j = IterVar((0, 16), "vi", IterVar.DataPar), Var("j")
    vi = axis.var
    value = a[vi, j * 2] + a[vi + 1, j * 2 + 1] + b[0, vi]
    inner = For(j, 0, 8, 0, BufferStore(c, value, [vi, j]))
    made = Block([axis], [], [], "block", inner)
    reads, writes, opaque = get_block_access_region(made, {each.data: each for each in (a, b, c)})
    assert regions(reads) == {"A": [("vi", "2"), ("0", "16")], "B": [("0", "1"), ("vi", "1")]}
    assert regions(writes) == {"C": [("vi", "1"), ("0", "8")]}
    assert opaque == []
    only_c, _, _ = get_block_access_region(made, {c.data: c})
    assert only_c == [], "buffers that are not asked for do not count"


def test_regions_of_opaque_code() -> None:
    """A buffer that is passed by its pointer may be touched everywhere, for reading and writing."""
    a, b = decl_buffer((16,), name="A"), decl_buffer((8,), name="B")
    body = SeqStmt([Evaluate(tir.call_extern("int32", "f", a.data)), BufferStore(b, a[3], [2])])
    made = Block([], [], [], "block", body)
    buffers = {each.data: each for each in (a, b)}
    reads, writes, opaque = get_block_access_region(made, buffers)
    assert regions(reads) == {"A": [("3", "1")]} and regions(opaque) == {"A": [("0", "16")]}
    both = get_block_read_write_region(made, buffers)
    assert regions(both[0]) == {"A": [("0", "16")]} and regions(both[1]) == {
        "B": [("2", "1")],
        "A": [("0", "16")],
    }
    assert regions(writes) == {"B": [("2", "1")]}


def test_regions_of_nested_blocks() -> None:
    """An inner block counts by its own regions, with the values of its axes."""
    a, b = decl_buffer((16,), name="A"), decl_buffer((16,), name="B")
    axis, i = IterVar((0, 16), "vi", IterVar.DataPar), Var("i")
    inner = Block(
        [axis],
        [BufferRegion(a, (Range.from_min_extent(axis.var, 2),))],
        [BufferRegion(b, (Range.from_min_extent(axis.var, 1),))],
        "inner",
        BufferStore(b, a[axis.var], [axis.var]),
    )
    outer = Block([], [], [], "outer", For(i, 0, 4, 0, BlockRealize([i * 2], True, inner)))
    reads, writes, _ = get_block_access_region(outer, {each.data: each for each in (a, b)})
    assert regions(reads) == {"A": [("0", "8")]} and regions(writes) == {"B": [("0", "7")]}


def test_regions_of_a_reduction() -> None:
    """A reduction reads what it updates."""
    a, b = decl_buffer((16, 16), name="A"), decl_buffer((16,), name="B")
    i, k = IterVar((0, 16), "vi", IterVar.DataPar), IterVar((0, 16), "vk", IterVar.CommReduce)
    update = BufferStore(b, b[i.var] + a[i.var, k.var], [i.var])
    made = Block([i, k], [], [], "sum", update, init=BufferStore(b, 0.0, [i.var]))
    reads, writes, _ = get_block_access_region(made, {each.data: each for each in (a, b)})
    assert regions(reads) == {"B": [("vi", "1")], "A": [("vi", "1"), ("vk", "1")]}
    assert regions(writes) == {"B": [("vi", "1")]}


def test_regions_through_a_view() -> None:
    """An access through a matched buffer touches its place in the buffer behind it."""
    b, view = decl_buffer((16,), name="B"), decl_buffer((4,), name="V")
    match = MatchBufferRegion(view, BufferRegion(b, (Range.from_min_extent(8, 4),)))
    made = Block([], [], [], "block", BufferStore(view, 1.0, [2]), match_buffers=[match])
    _, writes, _ = get_block_access_region(made, {b.data: b})
    assert regions(writes) == {"B": [("10", "1")]}
    opaque = Block([], [], [], "block", Evaluate(view.data), match_buffers=[match])
    assert regions(get_block_access_region(opaque, {b.data: b})[2]) == {"B": [("8", "4")]}


def test_regions_without_bounds() -> None:
    """An index that can be anything touches the whole dimension."""
    a, index = decl_buffer((16,), "float32", name="A"), decl_buffer((4,), "int32", name="I")
    i = Var("i")
    made = Block([], [], [], "gather", For(i, 0, 4, 0, Evaluate(a[index[i]])))
    reads, _, _ = get_block_access_region(made, {each.data: each for each in (a, index)})
    assert regions(reads) == {"A": [("0", "16")], "I": [("0", "4")]}


def test_shared_expressions_cost_their_nodes() -> None:
    """An index that is a graph of 200 levels of sharing is analysed at once."""
    a = decl_buffer((16,), name="A")
    index: PrimExpr = x
    for _ in range(200):
        index = operators.maximum(index, index + index)
    store = Store(pointer("p"), a[index], index)
    function = PrimFunc([a, x], store)
    assert verify_gpu_code(function, {"max_kernels": 0})
    assert detect_buffer_access_lca(function) == {a: None}
    assert verify_ssa(function)
