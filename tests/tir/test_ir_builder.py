"""The builder of loop programs."""

import pytest

from tilewright import tir
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import IterVar, Load, Ramp, Var
from tilewright.support.errors import ExpressionError
from tilewright.tir import ir_builder
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Store,
    While,
)


def test_loop_with_condition() -> None:
    """Loops and both branches of a condition nest as they are written."""
    builder = ir_builder.create()
    n = tir.SizeVar("n", "int32")
    data = builder.allocate("float32", n, name="A")
    with builder.for_range(0, n, name="i") as i:
        with builder.if_scope(i % 2 == 0):
            data[i] = data[i] + 1.0
        with builder.else_scope():
            data[0] = data[i] + 2.0
    body = builder.get()
    assert isinstance(body, Allocate) and body.extents == (n,)
    loop = body.body
    assert isinstance(loop, For) and loop.loop_var is i and loop.extent is n and i.name == "i"
    branch = loop.body
    assert isinstance(branch, IfThenElse) and str(branch.condition) == "i % 2 == 0"
    assert isinstance(branch.then_case, Store) and isinstance(branch.else_case, Store)
    assert str(branch.else_case.index) == "0"


def test_bounds_of_loops() -> None:
    """A loop starts where it says and has the difference as its extent; its variable has the given type."""
    builder = ir_builder.create()
    n = Var("n", "int64")
    with builder.for_range(2, n, name="i", dtype="int64", kind="parallel") as i:
        builder.emit(tir.call_extern("int32", "f", i))
    loop = builder.get()
    assert isinstance(loop, For) and loop.kind is ForKind.PARALLEL and i.dtype == "int64"
    assert str(loop.min) == "T.int64(2)" and str(loop.extent) == "n - T.int64(2)"
    assert isinstance(loop.body, Evaluate)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("serial", ForKind.SERIAL),
        ("parallel", ForKind.PARALLEL),
        ("vectorize", ForKind.VECTORIZED),
        ("unroll", ForKind.UNROLLED),
    ],
)
def test_kinds_of_loops(kind: str, expected: ForKind) -> None:
    """Each kind by its name; another name is refused."""
    builder = ir_builder.create()
    with builder.for_range(0, 4, kind=kind):
        builder.emit(Evaluate(1))
    assert builder.get().kind is expected  # type: ignore[attr-defined]
    with pytest.raises(ExpressionError, match="a loop is one of serial"):
        builder.for_range(0, 4, kind="sideways")


def test_while() -> None:
    """A while loop repeats its block."""
    builder = ir_builder.create()
    count = builder.allocate("int32", 1, name="count", scope="local")
    count[0] = 0
    with builder.while_loop(count[0] < 10):
        count[0] += 1
    body = builder.get()
    assert isinstance(body, Allocate) and body.buffer_var.storage_scope == "local"
    assert isinstance(body.body, SeqStmt) and isinstance(body.body[1], While)


def test_let_and_attributes_enclose_the_rest() -> None:
    """What follows a let, an allocation or an attribute in its scope is inside it."""
    builder = ir_builder.create()
    axis = IterVar((0, 32), "tx", IterVar.ThreadIndex, "threadIdx.x")
    builder.scope_attr(axis, "thread_extent", 32)
    value = builder.let("v", tir.const(3.0))
    with builder.new_scope():
        builder.scope_attr("pragma", "name", "text")
        builder.emit(tir.call_extern("int32", "g", value))
    builder.emit(tir.call_extern("int32", "h", value))
    body = builder.get()
    assert isinstance(body, AttrStmt) and body.node is axis
    assert isinstance(body.body, LetStmt) and body.body.var is value
    inner = body.body.body
    assert isinstance(inner, SeqStmt) and isinstance(inner[0], AttrStmt) and isinstance(inner[1], Evaluate)


def test_several_dimensions() -> None:
    """Several indices are flattened row-major, over the buffer's strides and after its offset."""
    builder = ir_builder.create()
    i, j, s, o = Var("i"), Var("j"), Var("s"), Var("o")
    memory = builder.allocate("float32", (4, 8, 16))
    assert str(memory[i, j, 3].index) == "(i * 8 + j) * 16 + 3"
    compact = builder.buffer_ptr(decl_buffer((4, 8)))
    assert str(compact[i, j].index) == "i * 8 + j" and str(compact[i].index) == "i"
    strided = builder.buffer_ptr(decl_buffer((4, 8), strides=[s, 1], elem_offset=o))
    assert str(strided[i, j].index) == "i * s + j + o"
    reshaped = builder.buffer_ptr(decl_buffer((32,)), shape=(4, 8))
    assert str(reshaped[i, j].index) == "i * 8 + j"


def test_wrong_number_of_indices() -> None:
    """The number of indices is one, or that of the dimensions."""
    builder = ir_builder.create()
    memory = builder.allocate("float32", (4, 8, 16), name="A")
    with pytest.raises(ExpressionError, match="A has 3 dimensions, 2 indices"):
        memory[0, 1]
    with pytest.raises(ExpressionError, match="ptr has no shape"):
        builder.pointer("float32")[0, 1]
    with pytest.raises(ExpressionError, match="indexed with an integer"):
        memory[1.5]


def test_vectors() -> None:
    """A vector content type loads and stores whole vectors; a vector index gathers."""
    builder = ir_builder.create()
    vectors = builder.pointer("float32x4", name="A")
    i = Var("i")
    load = vectors[i]
    assert isinstance(load, Load) and load.dtype == "float32x4" and str(load.index) == "T.ramp(i * 4, 1, 4)"
    vectors[i] = load * 2.0
    scalars = builder.pointer("float32", name="B")
    assert scalars[Ramp(i, 2, 8)].dtype == "float32x8"
    vectors[0] = 1.0
    body = builder.get()
    assert isinstance(body, SeqStmt) and all(
        isinstance(stmt, Store) and stmt.value.dtype == "float32x4" for stmt in body.seq
    )


def test_stored_types_must_match() -> None:
    """A number takes the type of the memory; an expression of another type is an error."""
    builder = ir_builder.create()
    memory = builder.allocate("float32", 4, name="A")
    memory[0] = 1
    with pytest.raises(ExpressionError, match="int32 is stored into A, which holds float32"):
        memory[0] = Var("x")
    body = builder.get()
    assert isinstance(body, Allocate) and body.body.value.dtype == "float32"  # type: ignore[attr-defined]


def test_misused_scopes() -> None:
    """An else without an if, a program taken inside a scope, and a builder used afterwards are errors."""
    builder = ir_builder.create()
    with pytest.raises(ExpressionError, match="else_scope must follow an if_scope"):
        builder.else_scope()
    builder.emit(Evaluate(1))
    with pytest.raises(ExpressionError, match="else_scope must follow"):
        builder.else_scope()
    with builder.if_scope(Var("x") < 1):
        builder.emit(Evaluate(1))
    with builder.else_scope():
        builder.emit(Evaluate(2))
    with pytest.raises(ExpressionError, match="else_scope must follow"):
        builder.else_scope()
    with builder.new_scope(), pytest.raises(ExpressionError, match="inside a scope"):
        builder.get()
    builder.get()
    with pytest.raises(ExpressionError, match="taken by get"):
        builder.emit(Evaluate(1))
    with pytest.raises(ExpressionError, match="taken by get"):
        builder.get()


def test_conditions_are_bool() -> None:
    """An integer is not a condition, and a statement is not a Python value."""
    builder = ir_builder.create()
    with pytest.raises(ExpressionError, match="a condition is a bool, not int32"):
        builder.if_scope(Var("x"))
    with pytest.raises(ExpressionError, match="emits statements and expressions, not int"):
        builder.emit(3)  # type: ignore[arg-type]


def test_error_inside_a_block_is_the_users() -> None:
    """An exception in a block passes through as it is."""
    builder = ir_builder.create()
    with pytest.raises(KeyError), builder.for_range(0, 4):
        raise KeyError


def test_empty_program() -> None:
    """A builder without statements gives one that does nothing."""
    body = ir_builder.create().get()
    assert isinstance(body, Evaluate) and str(body.value) == "0"


def test_likely() -> None:
    """The builder marks likely conditions."""
    made = ir_builder.create().likely(Var("x") < 1)
    assert str(made) == "T.likely(x < 1)"


def test_long_programs() -> None:
    """Ten thousand statements and a thousand nested lets are built in order."""
    builder = ir_builder.create()
    for number in range(10_000):
        builder.emit(Evaluate(tir.call_extern("int32", "f", number)))
    body = builder.get()
    assert isinstance(body, SeqStmt) and len(body) == 10_000 and "9999" in str(body[9_999].children()[0])
    builder = ir_builder.create()
    for number in range(1_000):
        builder.let(f"v{number}", number)
    made = builder.get()
    assert isinstance(made, LetStmt) and made.var.name == "v0"


def test_memory_of_the_builder_is_a_pointer():
    """A name of the builder's for memory can be a parameter, and what a plain store writes to."""
    builder = tir.ir_builder.create()
    memory = builder.pointer("float32", name="A")
    builder.emit(tir.Store(memory, 1.0, 0))
    function = tir.PrimFunc([memory], builder.get())
    assert function.params[0] is function.body.buffer_var is memory.asobject()


def test_loops_without_names():
    """Loops that are not named are i, j, k, then i_0, i_1."""
    builder = tir.ir_builder.create()
    names = []
    for _ in range(5):
        with builder.for_range(0, 2) as i:
            names.append(i.name)
            builder.emit(tir.Evaluate(i))
    with builder.for_range(0, 2, name="row") as row:
        names.append(row.name)
    assert names == ["i", "j", "k", "i_0", "i_1", "row"]


def test_loops_count_in_the_width_of_their_ends():
    """A loop with an int64 end counts in int64; what it stores has the width of the buffer."""
    builder = ir_builder.create()
    places = builder.pointer("int32", name="P")
    with builder.for_range(0, tir.IntImm("int64", 4), name="i") as i:
        places[i] = i
    loop = builder.get()
    assert loop.loop_var.dtype == "int64" and loop.body.value.dtype == "int32"
    with ir_builder.create().for_range(0, 4, name="j") as j:
        assert j.dtype == "int32"
