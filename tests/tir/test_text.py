"""The text of statements, functions and modules."""

from __future__ import annotations

import textwrap

import numpy as np
from tests.tir import script_programs as programs

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import IterVar, Load, Var
from tilewright.ir.module import IRModule
from tilewright.ir.type import PointerType, PrimType
from tilewright.tir.function import PrimFunc
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


def lines(text: str) -> str:
    """A text without the indentation that it has in this file."""
    return textwrap.dedent(text).lstrip("\n")


def test_matmul() -> None:
    """A function with a block: head, loops as a grid, axes, regions, initialisation."""
    assert programs.matmul.script() == lines(
        """
        # from tvm.script import tir as T
        @T.prim_func
        def func(a: T.handle, b: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, [16, 16], dtype="float32")
            B = T.match_buffer(b, [16, 16], dtype="float32")
            C = T.match_buffer(c, [16, 16], dtype="float32")
            # body
            # with T.block("root")
            for i, j, k in T.grid(16, 16, 16):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(C[vi, vj], A[vi, vk], B[vj, vk])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float32(0.0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
        """
    )


def test_kernel() -> None:
    """Threads are declared in the head and launched in the body; flat memory is loaded and stored."""
    assert programs.kernel.script() == lines(
        """
        # from tvm.script import tir as T
        @T.prim_func
        def func(A: T.Ptr[T.float32], B: T.Ptr[T.float32, "global"]) -> None:
            bx = T.env_thread("blockIdx.x")
            tx = T.env_thread("threadIdx.x")
            # body
            T.launch_thread(bx, 4)
            shared = T.allocate([8], "float32", "shared")
            T.launch_thread(tx, 8)
            T.store(shared, tx, T.load("float32", A, bx * 8 + tx))
            T.evaluate(T.tvm_storage_sync("shared", dtype="int32"))
            T.store(B, bx * 8 + tx, T.load("float32", shared, 7 - tx))
        """
    )


def test_module() -> None:
    """A module is a class; its functions have the module's names for them."""
    assert programs.Module.script() == lines(
        """
        # from tvm.script import tir as T
        @tvm.script.ir_module
        class Module:
            @T.prim_func
            def main(a: T.handle) -> None:
                T.func_attr({"global_symbol": "main"})
                A = T.match_buffer(a, [4], dtype="int64")
                # body
                for i in T.serial(T.int64(4)):
                    A[i] = i * T.int64(10000000000)
                T.evaluate(T.call_function("helper", A.data, dtype="int32"))

            @T.prim_func
            def helper(a: T.Ptr[T.int64]) -> None:
                # body
                T.store(a, 0, T.int64(7))
        """
    )
    assert repr(programs.Module) == programs.Module.script()


def test_prefix() -> None:
    """The name of the script language can be chosen; it is then no name of a variable."""
    tir = Var("tir", "int32")
    text = PrimFunc([tir], Evaluate(tir)).script("tir")
    assert (
        text
        == "# from tvm.script import tir as tir\n@tir.prim_func\ndef func(tir_1: tir.int32) -> None:\n"
        + ("    # body\n    tir.evaluate(tir_1)\n")
    )


def test_scopes_end_in_with_blocks() -> None:
    """What is last in a sequence is one line with its body after it; what is not is a block."""
    out, x = decl_buffer((1,), "int32", "out"), Var("x", "int32")
    data = Var("data", PointerType(PrimType("int32"), "shared"))
    first = LetStmt(x, 3, BufferStore(out, x, [0]))
    second = Allocate(data, "int32", [4], True, Store(data, 1, 0))
    assert repr(SeqStmt([first, second])) == lines(
        """
        with T.let(x, 3):
            out[0] = x
        data = T.allocate([4], "int32", "shared")
        data[0] = 1"""
    )


def test_repr_of_statements() -> None:
    """``repr`` is short: constants without their type, flat memory in brackets, elif for nested conditions."""
    data, i = Var("data", PointerType(PrimType("float32"))), Var("i", "int32")
    inner = IfThenElse(i < 5, Store(data, 1.5, i), Evaluate(0))
    stmt = For(
        i, 2, 6, ForKind.PARALLEL, IfThenElse(i < 3, Store(data, Load("float32", data, i) + 1.0, i), inner)
    )
    assert repr(stmt) == lines(
        """
        for i in T.parallel(2, 8):
            if i < 3:
                data[i] = data[i] + 1.0
            elif i < 5:
                data[i] = 1.5
            else:
                T.evaluate(0)"""
    )


def test_names_are_unique_in_scope() -> None:
    """Variables of one name are told apart where both are visible, and only there."""
    out = decl_buffer((4, 4), "int32", "i")

    def nest() -> Stmt:
        outer, inner = Var("i", "int32"), Var("i", "int32")
        body = For(inner, 0, outer, ForKind.SERIAL, BufferStore(out, inner, [outer, inner]))
        return For(outer, 0, 4, ForKind.SERIAL, body)

    assert PrimFunc([out], SeqStmt([nest(), nest()])).script() == lines(
        """
        # from tvm.script import tir as T
        @T.prim_func
        def func(var_i: T.handle) -> None:
            i = T.match_buffer(var_i, [4, 4], dtype="int32")
            # body
            for i_1 in T.serial(4):
                for i_2 in T.serial(i_1):
                    i[i_1, i_2] = i_2
            for i_1 in T.serial(4):
                for i_2 in T.serial(i_1):
                    i[i_1, i_2] = i_2
        """
    )


def test_buffers_over_allocated_memory_are_declared_inside() -> None:
    """A buffer whose pointer a statement defines is declared right after it."""
    data = Var("data", PointerType(PrimType("int32"), "shared"))
    view = decl_buffer((2, 2), "int32", "view", data=data)
    body = Allocate(data, "int32", [4], True, BufferStore(view, 5, [1, 1]))
    assert textwrap.dedent("\n".join(PrimFunc([], body).script().splitlines()[3:])) == lines(
        """
            # body
            data = T.allocate([4], "int32", "shared")
            view = T.buffer_decl([2, 2], dtype="int32", data=data)
            view[1, 1] = 5"""
    )


def test_attributes_before_their_variable() -> None:
    """An attribute may stand around the loop that it is about; both show one name."""
    i, out = Var("i", "int32"), decl_buffer((4,), "int32", "out")
    loop = For(i, 0, 4, ForKind.SERIAL, BufferStore(out, i, [i]))
    axis = IterVar(None, i, IterVar.DataPar)
    assert repr(AttrStmt(axis, "pragma_unroll", 1, loop)) == lines(
        """
        T.attr(T.iter_var(i, "DataPar", ""), "pragma_unroll", 1)
        for i in T.serial(4):
            out[i] = i"""
    )


def test_metadata() -> None:
    """A value without a text is a number, and a comment says what it is where that is asked for."""
    func = PrimFunc([], Evaluate(0), attrs={"array": np.arange(2)})
    assert 'T.func_attr({"array": T.metadata(0)})' in func.script()
    assert func.script(show_meta=True).endswith("# metadata(0): array([0, 1])\n")
    assert "# metadata" not in func.script()


def test_empty_module() -> None:
    """A module without functions is a class without content."""
    assert IRModule({}).script().endswith("class Module:\n    pass\n")


def test_deep_and_large_programs_print() -> None:
    """A nest of a thousand statements and a sum of ten thousand terms print without trouble."""
    x = Var("x", "int32")
    total = operators.add(x, x)
    for _ in range(10_000):
        total = operators.add(total, x)
    stmt: Stmt = Evaluate(total)
    for _ in range(1000):
        stmt = IfThenElse(x > 0, stmt)
    text = PrimFunc([x], stmt).script()
    assert text.count("if x > 0:") == 1000
    assert text.count("x + ") == 10_001
