"""Structural equality."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.ir import operators
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import (
    Call,
    CommReducer,
    FloatImm,
    IterVar,
    Let,
    PrimExpr,
    Range,
    Reduce,
    SizeVar,
    Var,
)
from tilewright.ir.module import IRModule
from tilewright.ir.structural import StructuralMismatch, assert_structural_equal, structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, GlobalTypeVar, PointerType, PrimType, TupleType, TypeVar
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
    SeqStmt,
    Stmt,
    Store,
)


def check(lhs: object, rhs: object, equal: bool, map_free_vars: bool = False) -> None:
    """Both directions agree, and equal programs have equal hashes."""
    assert structural_equal(lhs, rhs, map_free_vars) is equal
    assert structural_equal(rhs, lhs, map_free_vars) is equal
    same_hash = structural_hash(lhs, map_free_vars) == structural_hash(rhs, map_free_vars)
    assert same_hash is equal


def copy_function(name: str = "A", extent: int = 16, value: float = 1.0) -> PrimFunc:
    """A function that adds a number to every element of a buffer of symbolic size."""
    n = SizeVar(f"n_{name}", "int32")
    buffer = decl_buffer((n, extent), "float32", name=name)
    i, j = Var(f"i_{name}"), Var(f"j_{name}")
    inner = For(j, 0, extent, 0, BufferStore(buffer, buffer[i, j] + value, [i, j]))
    return PrimFunc([buffer, n], For(i, 0, n, 0, inner))


def test_functions_up_to_names() -> None:
    """Functions that differ in the names and identities of their variables and buffers are equal."""
    check(copy_function("A"), copy_function("B"), True)


@pytest.mark.parametrize("other", [{"extent": 17}, {"value": 2.0}])
def test_functions_with_other_constants(other: dict[str, float]) -> None:
    """Another extent or constant makes another function."""
    check(copy_function(), copy_function(**other), False)  # type: ignore[arg-type]


def test_free_variables() -> None:
    """A free variable is equal to itself; mapping free variables makes it equal to another of the same type."""
    x, y, z = Var("x"), Var("y"), Var("z", "int64")
    check(x + 1, x + 1, True)
    check(x + 1, y + 1, False)
    check(x + 1, y + 1, True, map_free_vars=True)
    assert not structural_equal(x, z, map_free_vars=True)
    check(x + y, x + x, False, map_free_vars=True)
    check(x - y, y - x, True, map_free_vars=True)
    assert not structural_equal(x, SizeVar("x", "int32"), map_free_vars=True)


def test_let() -> None:
    """The variable of a let is bound in its body; what it hides outside stays what it was."""
    x, y, z = Var("x"), Var("y"), Var("z")
    check(Let(x, z, x + 1), Let(y, z, y + 1), True)
    check(Let(x, z, x + 1), Let(y, z, z + 1), False)
    check(Let(x, 1, x) + x, Let(y, 1, y) + x, True)
    check(Let(x, 1, x) + x, Let(y, 1, y) + y, False)


def test_same_object_under_a_renaming() -> None:
    """A shared node is not equal to itself where its variable is bound on one side alone."""
    x, y = Var("x"), Var("y")
    shared = Evaluate(x + 1)
    check(For(x, 0, 4, 0, shared), For(y, 0, 4, 0, shared), False)
    check(For(x, 0, 4, 0, shared), For(y, 0, 4, 0, Evaluate(y + 1)), True)


def test_two_loops_may_share_a_variable() -> None:
    """Binding one variable twice, in sequence or nested, is the same program as binding two."""
    i, j = Var("i"), Var("j")
    use_i, use_j = Evaluate(i + 1), Evaluate(j + 1)

    def loop(variable: Var, body: Stmt, extent: int = 4) -> Stmt:
        return For(variable, 0, extent, 0, body)

    check(SeqStmt([loop(i, use_i), loop(i, use_i)]), SeqStmt([loop(i, use_i), loop(j, use_j)]), True)
    check(loop(i, SeqStmt([loop(i, use_i, 2), use_i])), loop(i, SeqStmt([loop(j, use_j, 2), use_i])), True)
    check(loop(i, SeqStmt([loop(i, use_i, 2), use_i])), loop(i, SeqStmt([loop(j, use_i, 2), use_i])), False)


def test_shared_statements_at_two_depths() -> None:
    """One loop at two places, of which one is inside another loop, is the same program as two loops."""
    i, j = Var("i"), Var("j")

    def loop() -> Stmt:
        variable = Var("v")
        return For(variable, 0, 4, 0, Evaluate(variable + 1))

    shared = loop()
    lhs = SeqStmt([shared, For(i, 0, 4, 0, shared)])
    check(lhs, SeqStmt([loop(), For(j, 0, 4, 0, loop())]), True)


def test_buffers_met_in_shared_parts() -> None:
    """A buffer that stands for itself cannot stand for another one later."""
    one, other = decl_buffer((8,), name="A"), decl_buffer((8,), name="B")
    first = one[0]
    check(first + one[1], first + other[1], False)
    check(one[0] + one[1], other[0] + other[1], True)


def test_one_variable_cannot_stand_for_two() -> None:
    """The correspondence is one to one."""
    i, j, k = Var("i"), Var("j"), Var("k")
    lhs = For(i, 0, 4, 0, For(j, 0, 4, 0, Evaluate(i + j)))
    check(lhs, For(j, 0, 4, 0, For(k, 0, 4, 0, Evaluate(j + k))), True)
    check(lhs, For(j, 0, 4, 0, For(k, 0, 4, 0, Evaluate(k + j))), False)
    check(lhs, For(j, 0, 4, 0, For(k, 0, 4, 0, Evaluate(k + k))), False)


def test_loop_kind_and_annotations() -> None:
    """How a loop runs and what is noted on it count."""
    i = Var("i")
    check(For(i, 0, 4, 0, Evaluate(i)), For(i, 0, 4, 1, Evaluate(i)), False)
    check(For(i, 0, 4, 0, Evaluate(i), None, {"a": 1}), For(i, 0, 4, 0, Evaluate(i), None, {"a": 1}), True)
    check(For(i, 0, 4, 0, Evaluate(i), None, {"a": 1}), For(i, 0, 4, 0, Evaluate(i), None, {"a": 2}), False)
    check(For(i, 0, 4, 0, Evaluate(i), None, {"a": 1}), For(i, 0, 4, 0, Evaluate(i), None, {"b": 1}), False)


def test_allocations_and_pointer_types() -> None:
    """Allocated memory is bound; its type and scope count, and no scope is the global one."""

    def program(dtype: str, scope: str) -> Stmt:
        pointer = Var("buf", PointerType(PrimType(dtype), scope))
        return Allocate(pointer, dtype, [16], True, Store(pointer, operators.const(0, dtype), 0))

    check(program("float32", ""), program("float32", ""), True)
    check(program("float32", ""), program("float32", "global"), True)
    check(program("float32", ""), program("float32", "shared"), False)
    check(program("float32", ""), program("int32", ""), False)


def test_reductions() -> None:
    """Axes and the combiner's variables are bound."""

    def reduction(buffer: Buffer, swap: bool = False) -> PrimExpr:
        axis = IterVar((0, 8), "k", IterVar.CommReduce)
        a, b = Var("a", "float32"), Var("b", "float32")
        combiner = CommReducer([a], [b], [b - a if swap else a - b], [operators.const(0.0)])
        return Reduce(combiner, [buffer[axis.var]], [axis], True, 0)

    buffer = decl_buffer((8,), "float32")
    check(reduction(buffer), reduction(buffer), True)
    check(reduction(buffer), reduction(buffer, swap=True), False)


def test_blocks() -> None:
    """The axes and buffers of a block are bound; its name does not count, its regions do."""

    def program(name: str, read_extent: int = 1) -> PrimFunc:
        source, target = decl_buffer((8,), name="S"), decl_buffer((8,), name="T")
        temporary = decl_buffer((8,), name="tmp")
        axis, loop = IterVar((0, 8), "vi", IterVar.DataPar), Var("i")
        reads = [BufferRegion(source, (Range.from_min_extent(axis.var, read_extent),))]
        writes = [BufferRegion(target, (Range.from_min_extent(axis.var, 1),))]
        body = SeqStmt(
            [
                BufferStore(temporary, source[axis.var], [axis.var]),
                BufferStore(target, temporary[axis.var] + 1.0, [axis.var]),
            ]
        )
        block = Block([axis], reads, writes, name, body, alloc_buffers=[temporary])
        return PrimFunc([source, target], For(loop, 0, 8, 0, BlockRealize([loop], True, block)))

    check(program("one"), program("two"), True)
    check(program("one"), program("one", read_extent=2), False)


def test_thread_axes() -> None:
    """A thread axis under an attribute is bound; its tag counts."""

    def program(tag: str) -> Stmt:
        axis = IterVar((0, 32), "t", IterVar.ThreadIndex, tag)
        return AttrStmt(axis, "thread_extent", 32, Evaluate(axis.var + 1))

    check(program("threadIdx.x"), program("threadIdx.x"), True)
    check(program("threadIdx.x"), program("threadIdx.y"), False)


def test_containers_and_numbers() -> None:
    """Sequences compare element by element, and a number equals the constant it stands for."""
    check((1, 2), [operators.const(1), operators.const(2)], True)
    check((1, 2), (1, 2, 3), False)
    check({"a": 1}, {"a": operators.const(1)}, True)
    check({"a": 1}, {"b": 1}, False)
    assert not structural_equal(1, 1.0) and not structural_equal(1, True)


def test_floats_by_bits() -> None:
    """A NaN equals a NaN; zero and minus zero differ."""
    check(FloatImm("float32", float("nan")), FloatImm("float32", float("nan")), True)
    check(FloatImm("float32", 0.0), FloatImm("float32", -0.0), False)
    check(np.arange(3.0), np.arange(3.0), True)
    check(np.arange(3.0), np.arange(4.0), False)


def test_constants_have_types() -> None:
    """The same number in another type is another constant."""
    check(operators.const(1), operators.const(1, "int64"), False)
    check(Call("float32", "tir.exp", [1.0]), Call("float32", "tir.log", [1.0]), False)


def test_modules() -> None:
    """Modules compare by the names of their functions, in any order."""
    one = IRModule({"f": copy_function(), "g": copy_function(value=2.0)})
    two = IRModule({"g": copy_function("B", value=2.0), "f": copy_function("B")})
    check(one, two, True)
    check(one, IRModule({"f": copy_function()}), False)


def test_types() -> None:
    """Function types are equal up to their type parameters."""
    a, b = TypeVar("a"), TypeVar("b")
    check(FuncType([a], a, [a]), FuncType([b], b, [b]), True)
    check(FuncType([a], a), FuncType([b], b), False)
    check(TupleType([PrimType("int32")]), TupleType([PrimType("int64")]), False)


def test_error_says_where_and_how() -> None:
    """The error of a mismatch gives the path and both parts."""
    with pytest.raises(StructuralMismatch) as raised:
        assert_structural_equal(copy_function(), copy_function(value=2.0))
    text = str(raised.value)
    assert ".body.body.body.value.b.value" in text
    assert "left:  1.0" in text and "right: 2.0" in text
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, AssertionError)
    i = Var("i")
    with pytest.raises(StructuralMismatch, match="one is For, the other LetStmt"):
        assert_structural_equal(For(i, 0, 4, 0, Evaluate(i)), LetStmt(i, 0, Evaluate(i)))


def test_attributes_count() -> None:
    """Attributes of functions are compared."""
    function = copy_function()
    check(function.with_attr("global_symbol", "f"), copy_function("B").with_attr("global_symbol", "f"), True)
    check(function.with_attr("global_symbol", "f"), function.with_attr("global_symbol", "g"), False)


def build(length: int, x: Var, y: Var) -> PrimExpr:
    made: PrimExpr = x
    for _ in range(length):
        made = made + y
    return made


def test_deep_expressions() -> None:
    """A chain of 100,000 nodes is compared, one of 20,000 hashed."""
    x, y = Var("x"), Var("y")
    assert structural_equal(build(100_000, x, y), build(100_000, x, y))
    assert not structural_equal(build(20_000, x, y), build(20_001, x, y))
    assert structural_hash(build(20_000, x, y)) == structural_hash(build(20_000, x, y))


def test_shared_expressions_are_looked_at_once() -> None:
    """Graphs whose trees would have two to the power of 200 nodes are compared and hashed at once."""
    x = Var("x")
    one: PrimExpr = x
    two: PrimExpr = x
    for _ in range(200):
        one, two = one * one, two * two
    check(one, two, True)
    check(one, two * x, False)


def _boxes(argument: str) -> IRModule:
    """A module with a generic type whose one constructor takes its parameter and a scalar."""
    header, parameter = GlobalTypeVar("Box"), TypeVar("A")
    made = Constructor("Box", [parameter, TensorType((), argument)], header)
    return IRModule(type_definitions={header: TypeData(header, [parameter], [made])})


def test_type_definitions_are_equal_by_name_and_constructors() -> None:
    """Two modules with the same definitions are equal, though their variables are different objects."""
    check(_boxes("int32"), _boxes("int32"), True)
    check(_boxes("int32"), _boxes("int64"), False)


def test_shared_computations_of_a_graph() -> None:
    """One call used twice is not two calls; tuples and their fields the same. Constants, variables and closures may be
    shared or not."""
    x = relay.var("x", shape=(2,))

    def twice() -> relay.Call:
        once = relay.exp(x)
        return once + once

    assert structural_equal(twice(), twice())
    apart = relay.exp(x) + relay.exp(x)
    for lhs, rhs in [(twice(), apart), (apart, twice())]:
        assert not structural_equal(lhs, rhs)
        with pytest.raises(
            StructuralMismatch, match=r"at \.args\[1\]: one side computes it once and reuses it"
        ):
            assert_structural_equal(relay.Function([x], lhs).body, relay.Function([x], rhs).body)
    pair = relay.Tuple([x, x])
    assert not structural_equal(
        relay.Tuple([pair, pair]), relay.Tuple([relay.Tuple([x, x]), relay.Tuple([x, x])])
    )
    one = relay.const(1.0)
    assert structural_equal(relay.Tuple([one, one]), relay.Tuple([relay.const(1.0), relay.const(1.0)]))


def test_functions_share_nothing() -> None:
    """A closure that is used twice is equal to two closures; so are functions of a module made of the same parts."""
    x = relay.var("x", shape=(2,))

    def closure() -> relay.Function:
        y = relay.var("y", shape=(2,))
        return relay.Function([y], relay.exp(relay.exp(y)))

    shared = closure()
    assert structural_equal(shared(shared(x)), closure()(closure()(x)))
    assert structural_equal(IRModule({"a": shared, "b": shared}), IRModule({"a": closure(), "b": closure()}))
