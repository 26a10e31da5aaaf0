"""The interpreter: buffers, statements and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tir.interpreter.programs import evaluate, float32, int32, intrinsic, pointer

from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import (
    Add,
    BufferLoad,
    CommReducer,
    IterVar,
    Let,
    Load,
    Max,
    Min,
    PrimExpr,
    Range,
    Reduce,
    Select,
    StringImm,
    Var,
)
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
    While,
)


class TestBuffers:
    """Buffers as arguments, and buffers with memory of their own."""

    def test_symbolic_shapes_bind(self) -> None:
        """Variables of a shape take their values from the argument; the same variable twice must agree."""
        n = Var("n", "int32")
        a, b = decl_buffer((n,), "int32", "A"), decl_buffer((n,), "int32", "B")
        i = Var("i", "int32")
        program = PrimFunc([a, b], For(i, 0, n, ForKind.PARALLEL, BufferStore(b, a[i] * 2 + n, [i])))
        result = np.zeros(5, np.int32)
        interpret(program, np.arange(5, dtype=np.int32), result)
        assert result.tolist() == [5, 7, 9, 11, 13]
        with pytest.raises(TilewrightError, match="dimension 0 of argument B must be n = 5, it is 6"):
            interpret(program, np.arange(5, dtype=np.int32), np.zeros(6, np.int32))

    def test_strides_and_offset_bind(self) -> None:
        """A transposed, reversed view works where the buffer leaves strides and offset free."""
        strides, offset = [Var("s0", "int32"), Var("s1", "int32")], Var("offset", "int32")
        a = decl_buffer((2, 3), "float64", "A", strides=strides, elem_offset=offset)
        b = decl_buffer((2, 3), "float64", "B")
        i, j = Var("i", "int32"), Var("j", "int32")
        copy = For(i, 0, 2, ForKind.SERIAL, For(j, 0, 3, ForKind.SERIAL, BufferStore(b, a[i, j], [i, j])))
        base = np.arange(12, dtype=np.float64).reshape(3, 4)
        view = base[::-1, 1:3].T
        result = np.zeros((2, 3))
        interpret(PrimFunc([a, b], copy), view, result)
        np.testing.assert_array_equal(result, view)

    def test_compact_buffers_refuse_views(self) -> None:
        """A buffer without strides takes compact arrays alone."""
        a = decl_buffer((2, 3), "float64", "A")
        with pytest.raises(TilewrightError, match="argument A must be compact"):
            interpret(PrimFunc([a], Evaluate(0)), np.zeros((3, 2)).T)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((2, 3), np.int32), "argument A must hold float32, the array holds int32"),
            (np.zeros(6, np.float32), "argument A must have 2 dimensions, the array has 1"),
            (np.zeros((2, 4), np.float32), "dimension 1 of argument A must be 3 = 3, it is 4"),
            ("text", "argument A must be an array, not str"),
        ],
    )
    def test_wrong_arguments(self, array: Any, message: str) -> None:
        """A mismatch says which argument, what was expected, what came."""
        a = decl_buffer((2, 3), "float32", "A")
        with pytest.raises(TilewrightError, match=message):
            interpret(PrimFunc([a], Evaluate(0)), array)

    def test_broadcasting_buffer(self) -> None:
        """In an auto_broadcast buffer a dimension of one stands for any size."""
        m = Var("m", "int32")
        a = decl_buffer((m,), "float32", "A", strides=[Var("s", "int32")], buffer_type="auto_broadcast")
        b = decl_buffer((4,), "float32", "B")
        i = Var("i", "int32")
        program = PrimFunc([a, b], For(i, 0, 4, ForKind.SERIAL, BufferStore(b, a[i], [i])))
        result = np.zeros(4, np.float32)
        interpret(program, np.array([7], np.float32), result)
        assert result.tolist() == [7, 7, 7, 7]

    def test_realized_box(self) -> None:
        """A realized buffer has memory for its box alone, addressed by the indices of the whole."""
        out = decl_buffer((4,), "int32", "out")
        t = decl_buffer((100,), "int32", "T")
        i, j = Var("i", "int32"), Var("j", "int32")
        fill = For(i, 10, 4, ForKind.SERIAL, BufferStore(t, i * i, [i]))
        take = For(j, 0, 4, ForKind.SERIAL, BufferStore(out, t[j + 10], [j]))
        body = BufferRealize(t, [Range.from_min_extent(10, 4)], True, SeqStmt([fill, take]))
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [100, 121, 144, 169]
        outside = BufferRealize(t, [Range.from_min_extent(10, 4)], True, BufferStore(t, 0, [14]))
        with pytest.raises(TilewrightError, match=r"buffer T\[10:14\] was accessed at \[14\]"):
            interpret(PrimFunc([out], outside), result)

    def test_bound_buffer(self) -> None:
        """buffer_bind_scope makes a buffer a window of another, with its offset and strides bound."""
        a = decl_buffer((4, 5), "int32", "A")
        window = decl_buffer(
            (2, 3), "int32", "window", strides=[Var("s0", "int32"), Var("s1", "int32")], offset_factor=1
        )
        i, j = Var("i", "int32"), Var("j", "int32")
        fill = BufferStore(window, i * 10 + j, [i, j])
        loops = For(i, 0, 2, ForKind.SERIAL, For(j, 0, 3, ForKind.SERIAL, fill))
        box = intrinsic("tvm_tuple", "handle", int32(1), int32(2), int32(2), int32(3))
        result = np.full((4, 5), -1, np.int32)
        interpret(PrimFunc([a], AttrStmt([window, a], "buffer_bind_scope", box, loops)), result)
        expected = np.full((4, 5), -1)
        expected[1:3, 2:5] = [[0, 1, 2], [10, 11, 12]]
        np.testing.assert_array_equal(result, expected)

    def test_fresh_memory_is_not_zero(self) -> None:
        """What is read before it is written shows as NaN."""
        out, temporary = decl_buffer((1,), "float32", "out"), pointer("t")
        body = Allocate(temporary, "float32", [1], True, BufferStore(out, Load("float32", temporary, 0), [0]))
        result = np.zeros(1, np.float32)
        interpret(PrimFunc([out], body), result)
        assert np.isnan(result[0])

    def test_bfloat16_arguments_are_bits(self) -> None:
        """bfloat16 arrays hold sixteen bits an element."""
        a = decl_buffer((2,), "bfloat16", "A")
        program = PrimFunc([a], BufferStore(a, a[0] + a[1], [0]))
        bits = np.array([0x3F80, 0x4000], np.uint16)
        interpret(program, bits)
        assert bits.tolist() == [0x4040, 0x4000]

    def test_deep_expressions_run(self) -> None:
        """A sum of twenty thousand terms costs heap, not the C stack."""
        x = Var("x", "int32")
        total: PrimExpr = x
        for _ in range(20_000):
            total = Add(total, x)
        out = decl_buffer((1,), "int32", "out")
        result = np.zeros(1, np.int32)
        interpret(PrimFunc([x, out], BufferStore(out, total, [0])), 3, result)
        assert result[0] == 60_003

    def test_shared_expressions_run_once(self) -> None:
        """A graph of two hundred doublings is evaluated in two hundred steps, and guards in it still guard."""
        x = Var("x", "int32")
        a = decl_buffer((4,), "int32", "A")
        total: PrimExpr = intrinsic("if_then_else", "int32", x < 4, BufferLoad(a, [x]), int32(1))
        for _ in range(200):
            total = Add(total, Min(total, int32(3)))
        out = decl_buffer((1,), "int32", "out")
        result = np.zeros(1, np.int32)
        program = PrimFunc([x, a, out], BufferStore(out, total, [0]))
        interpret(program, 9, np.zeros(4, np.int32), result)
        # 1, 2, 4, and then three more in each of the other steps.
        assert result[0] == 4 + 198 * 3
        interpret(program, 2, np.full(4, -1, np.int32), result)
        assert result[0] == 0


class TestStatements:
    """Control."""

    def test_loops_conditions_lets(self) -> None:
        """A loop with a start, a condition with both branches, and a let."""
        out = decl_buffer((6,), "int32", "out")
        i, square = Var("i", "int32"), Var("square", "int32")
        inner = IfThenElse(i < 4, BufferStore(out, square, [i]), BufferStore(out, -square, [i]))
        body = For(i, 2, 4, ForKind.UNROLLED, LetStmt(square, i * i, inner))
        result = np.zeros(6, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 0, 4, 9, -16, -25]

    def test_while(self) -> None:
        """A while loop runs as long as its condition holds: the integer square root of fifty."""
        out = decl_buffer((1,), "int32", "out")
        body = While(out[0] * out[0] <= 50, BufferStore(out, out[0] + 1, [0]))
        result = np.zeros(1, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result[0] == 8

    def test_let_expression(self) -> None:
        """A let binds within its body."""
        x = Var("x", "int32")
        assert evaluate(Let(x, int32(5), x * x)) == 25

    def test_reduce_expression(self) -> None:
        """A reduction over two axes with a condition, and an arg-max of pairs."""
        r, s = IterVar((0, 4), "r", 2), IterVar((1, 4), "s", 2)
        a, b = Var("a", "int32"), Var("b", "int32")
        total = CommReducer([a], [b], [a + b], [int32(0)])
        assert evaluate(Reduce(total, [r.var * s.var], [r, s], r.var > 1, 0)) == (2 + 3) * (1 + 2 + 3)
        i, v, k, w = Var("i"), Var("v"), Var("k"), Var("w")
        best = CommReducer([i, v], [k, w], [Select(v >= w, i, k), Max(v, w)], [int32(-1), int32(-(2**31))])
        score = 3 - (r.var - 2) * (r.var - 2)
        assert evaluate(Reduce(best, [r.var, score], [r], True, 0)) == 2

    def test_assert(self) -> None:
        """A failed assertion ends the program with its message; a passed one does nothing."""
        n = Var("n", "int32")
        program = PrimFunc([n], AssertStmt(n > 2, "n is too small", Evaluate(0)))
        assert interpret(program, 3) is None
        with pytest.raises(TilewrightError, match="assertion failed: n is too small"):
            interpret(program, 2)

    def test_return(self) -> None:
        """ret leaves the function with a value."""
        n, i = Var("n", "int32"), Var("i", "int32")
        leave = IfThenElse(i * i > n, Evaluate(intrinsic("ret", "int32", i)))
        program = PrimFunc([n], For(i, 0, 100, ForKind.SERIAL, leave))
        assert interpret(program, 30) == 6

    def test_wrong_number_of_arguments(self) -> None:
        """The parameters are named."""
        with pytest.raises(TilewrightError, match=r"takes 1 arguments \(n\), 0 were given"):
            interpret(PrimFunc([Var("n", "int32")], Evaluate(0)))

    def test_calls_by_name(self) -> None:
        """Packed calls get strings, scalars and arrays over the same memory; their results come back."""
        a = decl_buffer((4,), "float32", "A")
        shape = intrinsic("tvm_stack_make_shape", "handle", int32(4))
        array = intrinsic(
            "tvm_stack_make_array",
            "handle",
            *[a.data, shape, intrinsic("tvm_tuple", "handle"), int32(1), float32(0), int32(0)],
        )
        call = intrinsic("tvm_call_packed", "int32", StringImm("twice"), array, int32(10))
        program = PrimFunc([a], Evaluate(intrinsic("ret", "int32", call)))

        def twice(tensor: np.ndarray[Any, Any], number: int) -> int:
            tensor *= 2
            return number + 1

        values = np.arange(4, dtype=np.float32)
        assert interpret(program, values, functions={"twice": twice}) == 11
        assert values.tolist() == [0, 2, 4, 6]
        with pytest.raises(TilewrightError, match="calls twice, which is not registered"):
            interpret(program, values)

    def test_access_pointer_and_atomic_add(self) -> None:
        """An address is memory and a distance; atomic_add gives the old value."""
        a = decl_buffer((4,), "int32", "A")
        address = a.access_ptr("rw", offset=2)
        add = intrinsic("atomic_add", "int32", address, int32(5))
        values = np.arange(4, dtype=np.int32)
        assert interpret(PrimFunc([a], Evaluate(intrinsic("ret", "int32", add))), values) == 2
        assert values.tolist() == [0, 1, 7, 3]
        add = intrinsic("atomic_add", "int32", intrinsic("address_of", "handle", a[3]), int32(1))
        interpret(PrimFunc([a], Evaluate(add)), values)
        assert values.tolist() == [0, 1, 7, 4]


def block(
    axes: list[tuple[str, int, int, PrimExpr]], body: Any, init: Any = None, where: Any = True, **rest: Any
) -> BlockRealize:
    """A block with axes given as (name, extent, kind, value); body and init are functions of the axes' variables."""
    iter_vars = [IterVar((0, extent), name, kind) for name, extent, kind, _ in axes]
    variables = [axis.var for axis in iter_vars]
    made = Block(
        iter_vars, [], [], "block", body(*variables), None if init is None else init(*variables), **rest
    )
    return BlockRealize([value for *_, value in axes], where, made)


class TestBlocks:
    """Blocks of schedulable programs."""

    def test_reduction_with_init(self) -> None:
        """Init runs in the first step of the reduction alone, even where the axis is split."""
        a, c = decl_buffer((3, 8), "float32", "A"), decl_buffer((3,), "float32", "C")
        i, ko, ki = Var("i", "int32"), Var("ko", "int32"), Var("ki", "int32")
        realize = block(
            [("vi", 3, IterVar.DataPar, i), ("vk", 8, IterVar.CommReduce, ko * 4 + ki)],
            lambda vi, vk: BufferStore(c, c[vi] + a[vi, vk], [vi]),
            lambda vi, vk: BufferStore(c, float32(0), [vi]),
        )
        loops: Stmt = realize
        for variable, extent in ((ki, 4), (ko, 2), (i, 3)):
            loops = For(variable, 0, extent, ForKind.SERIAL, loops)
        values = np.arange(24, dtype=np.float32).reshape(3, 8)
        result = np.full(3, 99, np.float32)
        interpret(PrimFunc([a, c], loops), values, result)
        assert result.tolist() == values.sum(1).tolist()

    def test_predicate(self) -> None:
        """A block does not run where its predicate is false."""
        c = decl_buffer((3,), "int32", "C")
        i = Var("i", "int32")
        realize = block([("vi", 3, 0, i)], lambda vi: BufferStore(c, vi + 1, [vi]), where=i < 3)
        result = np.zeros(3, np.int32)
        interpret(PrimFunc([c], For(i, 0, 4, ForKind.SERIAL, realize)), result)
        assert result.tolist() == [1, 2, 3]

    def test_allocated_and_matched_buffers(self) -> None:
        """A block's own buffer lives within it, and a matched buffer is a window of another."""
        out = decl_buffer((4, 4), "int32", "out")
        own = decl_buffer((4,), "int32", "own")
        column: Buffer = decl_buffer(
            (4, 1), "int32", "column", strides=[Var("s0", "int32"), Var("s1", "int32")], offset_factor=1
        )
        i, j = Var("i", "int32"), Var("j", "int32")

        def body(vj: Var) -> Stmt:
            fill = For(i, 0, 4, ForKind.SERIAL, BufferStore(own, vj * 10 + i, [i]))
            return SeqStmt([fill, For(i, 0, 4, ForKind.SERIAL, BufferStore(column, own[3 - i], [i, 0]))])

        realize = block([("vj", 4, 0, j)], body, alloc_buffers=[own])
        box = BufferRegion(
            out, (Range(0, 4), Range.from_min_extent(realize.block.iter_vars[0].var, int32(1)))
        )
        matched = realize.block.replace(match_buffers=(MatchBufferRegion(column, box),))
        program = PrimFunc([out], For(j, 0, 4, ForKind.SERIAL, BlockRealize([j], True, matched)))
        result = np.zeros((4, 4), np.int32)
        interpret(program, result)
        np.testing.assert_array_equal(result, (np.arange(4) * 10)[None, :] + np.arange(3, -1, -1)[:, None])
