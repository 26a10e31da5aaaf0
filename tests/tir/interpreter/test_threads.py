"""The interpreter: what threads of a group do together."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tir.interpreter.programs import barrier, float32, int32, intrinsic, pointer, threads

from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    CommReducer,
    IntImm,
    IterVar,
    Load,
    Var,
)
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    Store,
)


class TestThreads:
    """GPU kernels."""

    def test_grid(self) -> None:
        """Every thread of every block runs once."""
        out = decl_buffer((6,), "int32", "out")
        body = threads(
            "blockIdx.x",
            3,
            lambda bx: threads("threadIdx.x", 2, lambda tx: BufferStore(out, bx * 10 + tx, [bx * 2 + tx])),
        )
        result = np.zeros(6, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 1, 10, 11, 20, 21]

    def reverse(self, between: list[Stmt]) -> PrimFunc:
        """Each block reverses four numbers through shared memory."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "out")
        shared = pointer("shared", "int32", "shared")

        def kernel(bx: Var, tx: Var) -> Stmt:
            put = Store(shared, a[bx * 4 + tx], tx)
            take = BufferStore(out, Load("int32", shared, 3 - tx), [bx * 4 + tx])
            return Allocate(shared, "int32", [4], True, SeqStmt([put, *between, take]))

        body = threads("blockIdx.x", 2, lambda bx: threads("threadIdx.x", 4, lambda tx: kernel(bx, tx)))
        return PrimFunc([a, out], body)

    @pytest.mark.parametrize("between", [[], [barrier()]], ids=["before barriers", "with a barrier"])
    def test_shared_memory(self, between: list[Stmt]) -> None:
        """Threads see what others wrote before the barrier; without barriers, in an earlier statement."""
        result = np.zeros(8, np.int32)
        interpret(self.reverse(between), np.arange(8, dtype=np.int32), result)
        assert result.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]

    def test_threads_that_skip_a_branch_stay_in_step(self) -> None:
        """Before barriers are inserted, a thread that has nothing to do in a branch waits for the others behind it."""
        a, out = decl_buffer((4,), "int32", "A"), decl_buffer((4,), "int32", "out")
        shared = pointer("shared", "int32", "shared")
        k = Var("k", "int32")

        def kernel(tx: Var) -> Stmt:
            put = For(k, 0, 4, ForKind.SERIAL, IfThenElse(k <= tx, Store(shared, a[tx], tx)))
            take = BufferStore(out, Load("int32", shared, 3 - tx), [tx])
            return Allocate(shared, "int32", [4], True, SeqStmt([IfThenElse(tx >= 0, put), take]))

        result = np.zeros(4, np.int32)
        interpret(PrimFunc([a, out], threads("threadIdx.x", 4, kernel)), np.arange(4, dtype=np.int32), result)
        assert result.tolist() == [3, 2, 1, 0]

    def test_divergent_barrier_is_an_error(self) -> None:
        """A barrier that some threads never reach would hang a device."""

        def kernel(tx: Var) -> Stmt:
            return IfThenElse(tx < 2, barrier())

        with pytest.raises(TilewrightError, match="2 of the 4 threads of a block wait at a barrier"):
            interpret(PrimFunc([], threads("threadIdx.x", 4, kernel)))

    def test_loop_around_a_barrier(self) -> None:
        """A tree reduction in shared memory: three rounds, two barriers each."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((1,), "int32", "out")
        shared = pointer("shared", "int32", "shared")
        step = Var("step", "int32")

        def kernel(tx: Var) -> Stmt:
            half = intrinsic("shift_right", "int32", int32(4), step)
            add = Store(shared, Load("int32", shared, tx) + Load("int32", shared, tx + half), tx)
            rounds = For(step, 0, 3, ForKind.SERIAL, SeqStmt([IfThenElse(tx < half, add), barrier()]))
            finish = IfThenElse(tx.equal(0), BufferStore(out, Load("int32", shared, 0), [0]))
            steps = SeqStmt([Store(shared, a[tx], tx), barrier(), rounds, finish])
            return Allocate(shared, "int32", [8], True, steps)

        result = np.zeros(1, np.int32)
        interpret(
            PrimFunc([a, out], threads("threadIdx.x", 8, kernel)), np.arange(1, 9, dtype=np.int32), result
        )
        assert result[0] == 36

    def test_same_index_bound_twice(self) -> None:
        """A thread index that is bound again inside a kernel is the same index; private memory spans both."""
        out = decl_buffer((4,), "int32", "out")
        private = pointer("private", "int32", "local")
        put = threads("threadIdx.x", 4, lambda tx: Store(private, tx * 7, 0))
        take = threads("threadIdx.x", 4, lambda tx: BufferStore(out, Load("int32", private, 0), [tx]))
        body = threads(
            "blockIdx.x", 1, lambda bx: Allocate(private, "int32", [1], True, SeqStmt([put, take]))
        )
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 7, 14, 21]

    def test_all_reduce(self) -> None:
        """tvm_thread_allreduce gives every thread of a row the row's sum; masked threads bring the identity."""
        a, out = decl_buffer((2, 4), "float32", "A"), decl_buffer((2, 4), "float32", "out")
        x, y = Var("x", "float32"), Var("y", "float32")
        total = CommReducer([x], [y], [x + y], [float32(0)])
        result_pointer = pointer("result", "float32", "local")

        def kernel(ty: Var, tx: Var) -> Stmt:
            call = intrinsic(
                "tvm_thread_allreduce", "handle", IntImm("uint32", 1), a[ty, tx], tx < 3, result_pointer, tx
            )
            reduce = AttrStmt(
                total, "reduce_scope", intrinsic("reinterpret", "handle", int32(0)), Evaluate(call)
            )
            store = BufferStore(out, Load("float32", result_pointer, 0), [ty, tx])
            return Allocate(result_pointer, "float32", [1], True, SeqStmt([reduce, store]))

        body = threads("threadIdx.y", 2, lambda ty: threads("threadIdx.x", 4, lambda tx: kernel(ty, tx)))
        values = np.arange(8, dtype=np.float32).reshape(2, 4)
        result = np.zeros((2, 4), np.float32)
        interpret(PrimFunc([a, out], body), values, result)
        assert result.tolist() == [[3] * 4, [15] * 4]

    def test_shuffles(self) -> None:
        """A sum over groups of four lanes by halving, then read from the first lane of each group."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "out")
        value = pointer("value", "int32", "local")
        mask, width, warp = IntImm("uint32", 0), int32(4), int32(8)

        def kernel(tx: Var) -> Stmt:
            steps: list[Stmt] = [Store(value, a[tx], 0)]
            for distance in (2, 1):
                args = [mask, Load("int32", value, 0), int32(distance), width, warp]
                shuffled = intrinsic("tvm_warp_shuffle_down", "int32", *args)
                steps.append(Store(value, Load("int32", value, 0) + shuffled, 0))
            args = [mask, Load("int32", value, 0), int32(0), width, warp]
            total = Var("total", "int32")
            store = BufferStore(out, total, [tx])
            steps.append(LetStmt(total, intrinsic("tvm_warp_shuffle", "int32", *args), store))
            return Allocate(value, "int32", [1], True, SeqStmt(steps))

        result = np.zeros(8, np.int32)
        interpret(
            PrimFunc([a, out], threads("threadIdx.x", 8, kernel)), np.arange(1, 9, dtype=np.int32), result
        )
        assert result.tolist() == [10] * 4 + [26] * 4

    def test_thread_loops_run_as_loops(self) -> None:
        """A loop bound to threads in a schedulable program runs serially; the thread's variable is the loop's."""
        out = decl_buffer((4,), "int32", "out")
        i = Var("i", "int32")
        axis = IterVar((0, 4), "tx", IterVar.ThreadIndex, "threadIdx.x")
        loop = For(i, 0, 4, ForKind.THREAD_BINDING, BufferStore(out, i + axis.var, [i]), axis)
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], loop), result)
        assert result.tolist() == [0, 2, 4, 6]
